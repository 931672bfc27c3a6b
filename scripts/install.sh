#!/usr/bin/env bash
# Installs the command with its plug-ins, manual pages and shell completions, or removes them:
# scripts/install.sh KVDYNO, or scripts/install.sh --uninstall
#
# They go below $DESTDIR$PREFIX. A list of the files is installed with them, so that only these are removed: the folder of
# plug-ins may also have some of the user. STRIP=1 installs without debug symbols.
set -euo pipefail
: "${PREFIX:?set PREFIX to the folder to install to}"
case $PREFIX in /*) ;; *) PREFIX=$PWD/$PREFIX ;; esac
prefix=${DESTDIR:-}${PREFIX%/}
list=lib/kvdyno/installed.txt

# Removes the files of the list, and the folders below the prefix that are empty then.
uninstall() (
  cd "$prefix"
  while IFS= read -r file; do
    rm -f "$file"
    rmdir -p "$(dirname "$file")" 2>/dev/null || true
  done < <(cat "$list" && echo "$list")
)

if [ "${1:-}" = --uninstall ]; then
  [ -f "$prefix/$list" ] || {
    echo "kvdyno is not installed in $prefix: $prefix/$list does not exist" >&2
    exit 1
  }
  uninstall
  exit
fi

kvdyno=$1 plugins=$(dirname "$1")/plugins
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
mkdir -p "$files/bin" "$files/lib/kvdyno" "$files/share/bash-completion/completions" \
  "$files/share/zsh/site-functions" "$files/share/fish/vendor_completions.d"
"$kvdyno" man --dir "$files/share/man/man1"
"$kvdyno" completions bash >"$files/share/bash-completion/completions/kvdyno"
"$kvdyno" completions zsh >"$files/share/zsh/site-functions/_kvdyno"
"$kvdyno" completions fish >"$files/share/fish/vendor_completions.d/kvdyno.fish"
cp "$kvdyno" "$files/bin/kvdyno"
for plugin in "$plugins"/*.so; do [ ! -f "$plugin" ] || cp "$plugin" "$files/lib/kvdyno/"; done
# The reasons why plug-ins were not built, for `kvdyno engines`.
[ ! -f "$plugins/absent.txt" ] || cp "$plugins/absent.txt" "$files/lib/kvdyno/"
if [ "${STRIP:-}" = 1 ]; then find "$files/bin" "$files/lib" -type f ! -name '*.txt' -exec strip --strip-unneeded {} +; fi

# What an earlier installation had and this one does not have is removed with it.
[ ! -f "$prefix/$list" ] || uninstall
new=$(cd "$files" && find . -type f | sed 's|^\./||' | LC_ALL=C sort)
while IFS= read -r file; do
  case $file in bin/*) mode=755 ;; *) mode=644 ;; esac
  install -D -m "$mode" "$files/$file" "$prefix/$file"
done <<<"$new"
mkdir -p "$prefix/lib/kvdyno"
printf '%s\n' "$new" >"$prefix/$list"
