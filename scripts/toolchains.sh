#!/usr/bin/env bash
# Checks that Rust and a C compiler are installed and new enough; otherwise prints how to install them and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
for tool in "${CARGO:-cargo}" rustc; do
  found=$({ "$tool" --version 2>/dev/null || true; } | sed -n '1s/^[a-z]* \([0-9]*\.[0-9]*\).*/\1/p')
  printf '%s\n' "$wanted" "${found:-0.0}" | sort -V -C || {
    echo "kvdyno needs Rust $wanted or newer, found ${found:-none}: install it with rustup (https://rustup.rs)" \
      "and run make again" >&2
    exit 1
  }
done
printf '#include <stdio.h>\n' | "${CC:-cc}" -x c -fsyntax-only - 2>/dev/null || {
  echo "kvdyno needs a C compiler with the C library's headers, and \`${CC:-cc}\` is not one: install it" \
    "(apt-get install gcc libc6-dev) and run make again" >&2
  exit 1
}
