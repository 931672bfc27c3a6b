#!/usr/bin/env bash
# Prints the licenses of the crates and Go modules that the command and its plug-ins contain, with their texts:
# scripts/licenses.sh PLUGINS
#
# A text that several packages have in common is printed once. A package without a file of its license is listed with its name
# only. Libraries of the system are not included: they are linked at run time. The modules of TiKV's client are listed only if
# its plug-in is in the folder PLUGINS, because few builds have it.
set -euo pipefail
plugins=$(realpath "$1")
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo} go=${GO:-go}
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
machine=$(uname -m)-unknown-linux-gnu
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src

# Lines of NAME VERSION|LICENSE|FOLDER.
{
  "$cargo" tree --locked --workspace --exclude kvdyno-hostile-rust --exclude kvdyno-unified --edges normal \
    --target "$machine" --prefix none --no-dedupe --format '{p}|{l}' | sed '/^|*$/d' | sort -u |
    while IFS='|' read -r package license; do
      # A crate of this repository has its folder in parentheses.
      case $package in *'('*'/'*')'*) continue ;; esac
      read -r name version _ <<<"$package"
      folder=$(find "$registry" -mindepth 2 -maxdepth 2 -type d -name "$name-${version#v}" -print -quit)
      echo "$name ${version#v}|$license|$folder"
    done
  if command -v "$go" >/dev/null; then
    # modules FOLDER PACKAGE...: those that the packages of a module need.
    modules() {
      (cd "$1" && shift && "$go" list -deps \
        -f '{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}} {{.Version}}|see its text|{{.Dir}}{{end}}{{end}}' "$@")
    }
    {
      for module in engines/go engines/servers; do
        # shellcheck disable=SC2046 # a list of words
        modules "$module" $(scripts/go-packages.sh "$module")
      done
      [ ! -f "$plugins/libkvdyno_tikv.so" ] || modules engines/servers/tikv ./plugin
    } | sort -u
    echo "Go's runtime and standard library|see its text|$("$go" env GOROOT)"
  fi
} >"$files/packages"

while IFS='|' read -r package license folder; do
  echo "$package|$license" >>"$files/list"
  [ -n "$folder" ] || continue
  case $package in Go*) depth=1 ;; *) depth=3 ;; esac
  find "$folder" -maxdepth "$depth" -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \
    -o -iname 'copyright*' -o -iname 'unlicense*' \) ! -name '*.rs' ! -name '*.go' -size -256k | sort |
    while IFS= read -r text; do
      sum=$(sha256sum <"$text" | cut -d' ' -f1)
      [ -f "$files/$sum.text" ] || cp "$text" "$files/$sum.text"
      echo "$package (${text#"$folder"/})" >>"$files/$sum.packages"
    done
done <"$files/packages"

echo "kvdyno contains these packages. The texts of their licenses follow."
echo
awk -F'|' '{ printf "%-60s %s\n", $1, $2 == "" ? "-" : $2 }' "$files/list"
for packages in "$files"/*.packages; do
  printf '\n%s\n' "--------------------------------------------------------------------------------"
  sed 's/^/for /' "$packages"
  echo
  cat "${packages%.packages}.text"
done
