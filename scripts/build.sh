#!/usr/bin/env bash
# Builds the command with cargo, and at the same time the plug-ins in C, C++ and Go: scripts/build.sh TARGET [tests]
#
# SELECTION has the packages for cargo. What the plug-ins print follows after cargo's output. With `tests`, the sources are
# checked first (scripts/check.sh), and the tests and all other plug-ins are built too: the core for the command and the core
# for its own tests at the same time, because each keeps one processor busy for minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo} target=$1 what=${2:-command} start=$SECONDS

# The build script of cargo watches the engine.toml files but not folders, so a new folder is announced by touching it.
command=$target/release/kvdyno
for folder in engines engines/go engines/servers; do
  [ ! "$folder" -nt "$command" ] || touch engines/plugins.rs
done

mkdir -p "$target/release"
[ -e "$command" ] ||
  echo "building kvdyno with cargo, and plug-ins in C, C++ and Go; this takes some minutes the first time" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT

plugins() {
  scripts/plugins.sh "$target" && scripts/go-plugins.sh "$target" &&
    { [ "$what" != tests ] || scripts/go-plugins.sh "$target" servers; }
}

# shellcheck disable=SC2086 # lists of words
crates() {
  if [ "$what" = tests ]; then
    scripts/check.sh && "$cargo" test --release --no-run $SELECTION || return
  fi
  "$cargo" build --release $SELECTION && { [ "$what" != tests ] || scripts/rust-plugins.sh "$target"; }
}

plugins >"$log" 2>&1 &
plugins=$!
if ! crates; then
  [ ! -d "/proc/$plugins" ] || echo "the build failed; waiting until the plug-ins in C, C++ and Go have ended" >&2
  wait $plugins || cat "$log" >&2
  exit 1
fi
# A build that changes nothing ends within seconds.
[ $((SECONDS - start)) -lt 5 ] || [ ! -d "/proc/$plugins" ] || echo "waiting for the plug-ins in C, C++ and Go" >&2
wait $plugins || { cat "$log" >&2; exit 1; }
cat "$log" >&2
[ $((SECONDS - start)) -lt 5 ] || echo "built in $((SECONDS - start)) s" >&2
