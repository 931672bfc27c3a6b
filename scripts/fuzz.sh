#!/usr/bin/env bash
# Runs each fuzz target for FUZZ_SECONDS seconds; first checks that the fuzzer finds a planted defect.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo} seconds=${FUZZ_SECONDS:-60}

"$cargo" fuzz --version >/dev/null 2>&1 || {
  echo "fuzzing needs cargo-fuzz: run \`cargo install cargo-fuzz\`" >&2
  exit 1
}
if "$cargo" fuzz run --sanitizer none canary -- -max_total_time="$seconds" >/dev/null 2>&1; then
  echo "the fuzzer did not find the planted defect of the target \`canary\`, so its other results mean nothing" >&2
  exit 1
fi
for target in $("$cargo" fuzz list | grep -v canary); do
  "$cargo" fuzz run --sanitizer none "$target" -- -max_total_time="$seconds"
done
