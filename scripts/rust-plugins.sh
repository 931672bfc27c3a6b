#!/usr/bin/env bash
# Builds the plug-ins of the engines in Rust that take long to build: scripts/rust-plugins.sh TARGET
#
# RUST_PLUGINS has their names. They go into TARGET/release/plugins, where kvdyno looks for those of its own build.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo} release=$1/release

# shellcheck disable=SC2086 # a list of words
"$cargo" build --release $(printf -- '-p kvdyno-%s ' $RUST_PLUGINS)
mkdir -p "$release/plugins"
for name in $RUST_PLUGINS; do
  built=$release/libkvdyno_${name//-/_}.so plugin=$release/plugins/libkvdyno_$name.so
  cmp -s "$built" "$plugin" || install -m755 "$built" "$plugin"
done
