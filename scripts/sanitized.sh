#!/usr/bin/env bash
# Verifies every plug-in in C and C++ under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer:
# scripts/sanitized.sh KVDYNO FOLDER
#
# Only our code is instrumented; the engines' libraries are as installed, so leaks inside them are ignored
# (tests/leaks.txt). The plug-ins and logs are in FOLDER.
set -euo pipefail
cd "$(dirname "$0")/.."
kvdyno=$1 folder=$2 cc=${CC:-cc}

mkdir -p "$folder/plugins"
rm -f "$folder"/log.*
cmake -S engines -B "$folder/build" -DKVDYNO_OUT="$folder/plugins" -DKVDYNO_SANITIZE=ON >"$folder/build.log"
cmake --build "$folder/build" -j 2 >>"$folder/build.log" || { cat "$folder/build.log" >&2; exit 1; }

names=$(for library in "$folder"/plugins/libkvdyno_*.so; do
  engine=${library##*/libkvdyno_}
  sed -n 's/^name = "\(.*\)"$/\1/p' "engines/${engine%.so}/engine.toml" | tr -d ,
done)
code=0
# shellcheck disable=SC2086 # names of engines
LD_PRELOAD="$("$cc" -print-file-name=libasan.so) $("$cc" -print-file-name=libubsan.so)" \
  ASAN_OPTIONS=log_path=$folder/log:abort_on_error=1 UBSAN_OPTIONS=log_path=$folder/log:abort_on_error=1 \
  LSAN_OPTIONS=suppressions=$PWD/tests/leaks.txt:print_suppressions=0 \
  "$kvdyno" prove --only rules --plugins "$folder/plugins" --seconds 3 $names || code=$?
if cat "$folder"/log.* 2>/dev/null; then exit 1; fi
exit $code
