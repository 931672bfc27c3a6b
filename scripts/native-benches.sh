#!/usr/bin/env bash
# Compares drivers in C and C++ with hand-written loops over the same database: scripts/native-benches.sh TARGET [--small]
#
# With --small each benchmark runs once and measures nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "$1")
build=$target/release/plugins-build

{ cmake -S engines -B "$build" -DKVDYNO_OUT="$target/release/plugins" -DKVDYNO_BENCHES=ON >"$build.log" &&
  cmake --build "$build" -j 2 >>"$build.log"; } || { tail -20 "$build.log" >&2; exit 1; }
for bench in "$build"/benches/bench-*; do
  for threads in 1 2; do "$bench" "${@:2}" --threads "$threads"; done
done
