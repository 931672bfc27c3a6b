#!/usr/bin/env bash
# Packs the command with its plug-ins, manual pages, completions and documents: scripts/archive.sh KVDYNO
#
# Writes dist/kvdyno-VERSION-linux-MACHINE.tar.gz and its SHA-256 sum. REQUIREMENTS.txt in the archive has the oldest glibc
# that it runs on and the libraries that each plug-in needs, both read from the files.
set -euo pipefail
cd "$(dirname "$0")/.."
kvdyno=$1
name=kvdyno-$("$kvdyno" --version | cut -d' ' -f2)-linux-$(uname -m)
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
root=$files/$name

STRIP=1 DESTDIR=$root PREFIX=/ scripts/install.sh "$kvdyno"
cp README.md CHANGELOG.md LICENSE "$root/"
scripts/licenses.sh "$root/lib/kvdyno" >"$root/THIRD-PARTY-LICENSES.txt"
glibc=$(objdump -T "$root/bin/kvdyno" "$root"/lib/kvdyno/*.so | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
{
  echo "glibc ${glibc#GLIBC_} or newer."
  echo
  echo "A plug-in is skipped, with the reason, if one of its libraries is not installed. Names are those of Debian's files:"
  echo
  for plugin in "$root"/lib/kvdyno/*.so; do
    libraries=$(objdump -p "$plugin" | awk '$1 == "NEEDED" && $2 !~ /^(libc|libm|libgcc_s|ld-linux.*)\.so/ { print $2 }')
    [ -z "$libraries" ] || echo "${plugin##*/}:" $libraries
  done
} >"$root/REQUIREMENTS.txt"

mkdir -p dist
tar -C "$files" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-$(stat -c %Y Cargo.lock)}" \
  -cf - "$name" | gzip -9n >"dist/$name.tar.gz"
cd dist
sha256sum "$name.tar.gz" >"$name.tar.gz.sha256"
echo "dist/$name.tar.gz"
