#!/usr/bin/env bash
# Builds the plug-ins of the engines in Go: scripts/go-plugins.sh TARGET [servers|tikv]
#
# One plug-in has all engines, because a process can have one Go runtime; another has RocksDB through cgo, if its header is
# installed. With `servers`, only the plug-in of the drivers of servers is built, and with `tikv` only that of TiKV. What cannot
# be built is reported and skipped; with CI=true that is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} target=$(realpath -m "$1") which=${2:-embedded}
plugins=$target/release/plugins
build=$target/release/plugins-build/go
mkdir -p "$build" "$plugins"

wanted=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' engines/go/go.mod)
found=$({ "$go" version 2>/dev/null || true; } | sed -n 's/^go version go\([0-9]*\.[0-9]*\).*/\1/p')
if ! printf '%s\n' "$wanted" "${found:-0.0}" | sort -V -C; then
  echo "engines in Go: skipped (they need Go $wanted or newer, found ${found:-none}; https://go.dev/dl)" >&2
  rm -f "$plugins/libkvdyno_go.so" "$plugins/libkvdyno_grocksdb.so" "$plugins/libkvdyno_servers.so" \
    "$plugins/libkvdyno_tikv.so"
  [ "${CI:-}" != true ]
  exit
fi

# engines MODULE: writes a file for the package MODULE/plugin that imports each engine of the module, and an overlay with it, so
# that no list names the engines and nothing is written into the tree.
engines() {
  local file=$build/${1##*/}.go module package
  module=$(sed -n 's/^module //p' "$1/go.mod")
  {
    printf '// All engines of this module.\npackage main\n\n'
    for package in $(scripts/go-packages.sh "$1"); do echo "import _ \"$module/${package#./}\""; done
  } >"$file"
  printf '{"Replace": {"%s": "%s"}}\n' "$(realpath "$1")/plugin/engines.go" "$file" >"$file.json"
  overlay=$file.json
}

# plugin FOLDER PACKAGE NAME
plugin() {
  if (cd "$1" && "$go" build ${overlay:+-overlay "$overlay"} -buildmode=c-shared -trimpath \
    -ldflags "-s -w -extldflags '-Wl,--version-script=$script'" -o "$build/$3" "$2") 2>"$build/../go.log"; then
    cmp -s "$build/$3" "$plugins/$3" || install -m755 "$build/$3" "$plugins/"
  else
    echo "$3: skipped (it does not build)" >&2
    head -20 "$build/../go.log" >&2
    [ "${CI:-}" != true ]
  fi
}

script=$(realpath driver/plugin.map)
overlay=
if [ "$which" = servers ]; then
  engines engines/servers
  plugin engines/servers ./plugin libkvdyno_servers.so
  exit
fi
if [ "$which" = tikv ]; then
  plugin engines/servers/tikv ./plugin libkvdyno_tikv.so
  exit
fi
engines engines/go
plugin engines/go ./plugin libkvdyno_go.so
overlay=
if "${CC:-cc}" -x c -fsyntax-only -include rocksdb/c.h /dev/null 2>/dev/null; then
  plugin engines/go/grocksdb . libkvdyno_grocksdb.so
fi
