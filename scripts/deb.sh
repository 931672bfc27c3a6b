#!/usr/bin/env bash
# Makes a Debian package with cargo-deb (Cargo.toml, [package.metadata.deb]): scripts/deb.sh KVDYNO
#
# Its dependencies are read from the files, so it fits the release of Debian or Ubuntu that it is built on.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo} kvdyno=$1

"$cargo" deb --version >/dev/null 2>&1 || {
  echo "a Debian package needs cargo-deb: run \`cargo install cargo-deb --locked\`" >&2
  exit 1
}
staged=$(dirname "$kvdyno")/staged
rm -rf "$staged"
STRIP=1 DESTDIR=$staged PREFIX=/usr scripts/install.sh "$kvdyno"
gzip -9n "$staged"/usr/share/man/man1/*.1
scripts/licenses.sh "$staged/usr/lib/kvdyno" | gzip -9n >"$staged/THIRD-PARTY-LICENSES.txt.gz"
mkdir -p dist
"$cargo" deb --no-build --no-strip --output dist/
cd dist
for package in kvdyno_*.deb; do sha256sum "$package" >"$package.sha256"; done
