#!/usr/bin/env bash
# Runs all tests, and each benchmark once at a small size; SELECTION has the packages and features for cargo.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo} go=${GO:-go}

if command -v "$go" >/dev/null; then
  (cd driver/go && "$go" test -race ./...)
else
  echo "tests of the kit in Go: skipped (Go is not installed; https://go.dev/dl)" >&2
  [ "${CI:-}" != true ]
fi
# shellcheck disable=SC2086 # a list of words
"$cargo" test --no-fail-fast $SELECTION
for bench in harness statistics; do
  "$cargo" bench --workspace --features all-engines,png --bench $bench -- --small
done
