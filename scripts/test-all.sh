#!/usr/bin/env bash
# Runs the tests that take long, in addition to scripts/test.sh: scripts/test-all.sh KVDYNO
#
# The tests of a debug build with overflow checks, the report in a browser, distributions at ten
# million draws, every command of docs/replaces.md, and every engine against the model.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
kvdyno=$1

# long SELECTOR...: the ignored tests that these arguments select.
# shellcheck disable=SC2086 # SELECTION is a list of words
long() { "$cargo" test --release $SELECTION "$@" -- --ignored --nocapture; }

"$cargo" test --workspace
long --test browser
long --lib ten_thousand
# shellcheck disable=SC2086 # a list of words
"$cargo" bench $SELECTION --bench statistics
long --lib ten_million
for name in go_soak hostile ranks replaces resp; do long --test $name; done
"$kvdyno" selftest
"$kvdyno" verify
