#!/usr/bin/env bash
# Builds the plug-ins of the engines in C and C++: scripts/plugins.sh TARGET
#
# They go into TARGET/release/plugins, where kvdyno looks for those of its own build. What cannot be built is reported and
# skipped; with CI=true that is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "$1")
build=$target/release/plugins-build

if ! command -v cmake >/dev/null; then
  echo "engines in C and C++: skipped (cmake is not installed; run \`apt-get install cmake\`)" >&2
  exit 0
fi
mkdir -p "$target/release"
if ! cmake -S engines -B "$build" -DKVDYNO_OUT="$target/release/plugins" -DKVDYNO_BENCHES=OFF >"$build.log" 2>&1; then
  echo "engines in C and C++: skipped (cmake failed; see $build.log)" >&2
elif ! cmake --build "$build" -j 2 -- --no-print-directory -k >>"$build.log" 2>&1; then
  echo "some engines in C and C++: skipped (they do not build; see $build.log)" >&2
  { grep -E '(error|Error)[: ]' "$build.log" || true; } | head -20 >&2
else
  exit 0
fi
[ "${CI:-}" != true ]
