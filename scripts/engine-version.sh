#!/usr/bin/env bash
# Builds an engine of this tree with another version of its crate or module: scripts/engine-version.sh ENGINE VERSION FOLDER
#
# For `kvdyno bisect --build`. ENGINE is a folder of engines/ with a Cargo.toml, or one of engines/go. The driver is copied to
# FOLDER/VERSION, so the tree does not change; what all versions have in common is built once. The last line is the path of the
# plug-in.
set -euo pipefail
engine=$1 version=$2
mkdir -p "$3/$2"
folder=$(cd "$3" && pwd)
own=$folder/$version plugin=$folder/$version/libkvdyno_$engine.so
cd "$(dirname "$0")/.."
tree=$PWD

in_rust() {
  rm -rf "$own/source"
  cp -r "engines/$engine" "$own/source"
  cd "$own/source"
  sed -i -E \
    -e "s|\"\.\./\.\./driver/rust\"|\"$tree/driver/rust\"|" \
    -e "s|^($engine = (\{[^}]*version = )?)\"[^\"]*\"|\1\"=$version\"|" \
    -e '/^crate-type/d' -e 's|^path = "driver.rs"|&\ncrate-type = ["cdylib"]|' \
    -e '/^\[lints\]/,/^$/d' Cargo.toml
  printf '\n[workspace]\n' >>Cargo.toml
  if ! grep -q "\"=$version\"" Cargo.toml; then
    echo "engines/$engine/Cargo.toml has no crate \`$engine\`" >&2
    exit 1
  fi
  # Engines that are built into kvdyno export no plug-in, and their names are taken.
  sed -i "s|name: c\"$engine\"|name: c\"$engine-$version\"|" driver.rs
  if ! grep -q 'export_drivers!' driver.rs; then
    sed -n 's/^impl Driver for \([A-Za-z0-9]*\).*/kvdyno_driver::export_drivers!(\1);/p' driver.rs >>driver.rs.end
    cat driver.rs.end >>driver.rs
  fi
  CARGO_TARGET_DIR=$folder/target "${CARGO:-cargo}" build --release >&2
  name=$(sed -n 's/^name = "\(.*\)"/\1/p' Cargo.toml | head -1)
  cp "$folder/target/release/lib${name//-/_}.so" "$plugin"
}

in_go() {
  local module
  module=$(sed -n 's/.*ModuleVersion("\([^"]*\)").*/\1/p' "engines/go/$engine/driver.go" | head -1)
  if [ -z "$module" ]; then
    echo "engines/go/$engine/driver.go does not say which module it drives" >&2
    exit 1
  fi
  rm -rf "$own/source"
  cp -r engines/go "$own/source"
  cd "$own/source"
  printf 'package main\n\nimport _ "kvdyno/engines/%s"\n' "$engine" >plugin/engine.go
  "${GO:-go}" mod edit -replace "kvdyno/driver=$tree/driver/go"
  "${GO:-go}" get "$module@$version" >&2
  "${GO:-go}" build -buildmode=c-shared -trimpath \
    -ldflags "-s -w -extldflags '-Wl,--version-script=$tree/driver/plugin.map'" -o "$plugin" ./plugin >&2
}

if [ -f "engines/$engine/Cargo.toml" ]; then
  in_rust
elif [ -f "engines/go/$engine/engine.toml" ]; then
  in_go
else
  echo "engines/$engine: no engine in Rust or Go" >&2
  exit 1
fi
echo "$plugin"
