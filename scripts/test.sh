#!/usr/bin/env bash
# Runs all tests; SELECTION has the packages for cargo, RUST_PLUGINS the engines in Rust that are plug-ins. No crate has
# doctests (tests/layers.rs). Benchmarks are only type-checked here (scripts/check.sh); scripts/test-all.sh runs each at a
# small size.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo} go=${GO:-go}

# The kit in Go is tested while cargo compiles, whose last crates leave a processor idle.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
kit=
if command -v "$go" >/dev/null; then
  (cd driver/go && "$go" test -race ./... && cd ../../engines/servers && "$go" test ./...) >"$log" 2>&1 &
  kit=$!
else
  echo "tests of the kit in Go: skipped (Go is not installed; https://go.dev/dl)" >&2
  [ "${CI:-}" != true ]
fi
# Many tests wait for processes and servers, so two for each processor take less time.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
compiled=0
# shellcheck disable=SC2086 # a list of words
"$cargo" test --release --no-run $SELECTION || compiled=$?
[ -z "$kit" ] || wait $kit || { cat "$log" >&2; exit 1; }
cat "$log"
[ $compiled = 0 ] || exit $compiled
# Much of their time, these two wait for servers to start and for drivers that never answer: they run beside the others.
failed=0
# shellcheck disable=SC2086 # a list of words
"$cargo" test --release --no-fail-fast $SELECTION --test conformance --test hostile >"$log" 2>&1 &
beside=$!
# shellcheck disable=SC2086 # a list of words
"$cargo" test --release --no-fail-fast $SELECTION --lib --bins --test '[!ch]*' --test 'c[!o]*' || failed=$?
wait $beside || failed=$?
cat "$log"
[ $failed = 0 ] || exit $failed
# shellcheck disable=SC2086 # a list of words
"$cargo" test --release $(printf -- '-p kvdyno-%s ' $RUST_PLUGINS)
