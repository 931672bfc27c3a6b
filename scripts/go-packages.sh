#!/usr/bin/env bash
# Prints the packages of the engines in a module of Go: scripts/go-packages.sh MODULE
#
# They are the folders with an engine.toml that are not modules of their own. Printed as `./NAME`, one per line.
set -euo pipefail
cd "$1"
for file in */engine.toml; do
  [ -e "${file%/*}/go.mod" ] || echo "./${file%/*}"
done
