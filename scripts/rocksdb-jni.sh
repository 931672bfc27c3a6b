#!/usr/bin/env bash
# Downloads a newer RocksDB than Debian's, out of a Maven artifact: scripts/rocksdb-jni.sh VERSION FOLDER
#
# The library is in FOLDER/rocksdb-jni/lib afterwards. Needs Maven.
set -euo pipefail
version=$1 folder=$2

command -v mvn >/dev/null || {
  echo "rocksdb-jni needs Maven: run \`apt-get install maven\`" >&2
  exit 1
}
machine=$(uname -m)
[ "$machine" = x86_64 ] && file=librocksdbjni-linux64.so || file=librocksdbjni-linux-$machine.so
mkdir -p "$folder/rocksdb-jni/lib"
mvn -q -B dependency:copy -Dartifact=org.rocksdb:rocksdbjni:"$version" -DoutputDirectory="$folder"
cd "$folder"
cmake -E tar xf "rocksdbjni-$version.jar" "$file"
mv "$file" rocksdb-jni/lib/librocksdbjni.so
