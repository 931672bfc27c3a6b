#!/usr/bin/env bash
# Checks formatting and lints: rustfmt, clippy, clang-format, gofmt and go vet.
#
# A tool that is not installed is reported and skipped; with CI=true that is an error. STRICT=true makes a warning of
# clippy an error. SELECTION has the packages for cargo,
# RUST_PLUGINS the engines in Rust that are plug-ins.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo} go=${GO:-go}

# skip CHECK REASON
skip() {
  echo "$1: skipped ($2)" >&2
  [ "${CI:-}" != true ]
}

if "$cargo" fmt --version >/dev/null 2>&1; then
  "$cargo" fmt --all --check
else
  skip rustfmt "not installed; run \`rustup component add rustfmt\`"
fi

if "$cargo" clippy --version >/dev/null 2>&1; then
  warnings=
  [ "${STRICT:-}" != true ] || warnings="-- -D warnings"
  # Each selection as it is built, so that crates are not checked with other features than they are built with.
  # shellcheck disable=SC2086 # lists of words
  for selection in "$SELECTION" "$(printf -- '-p kvdyno-%s ' $RUST_PLUGINS)"; do
    "$cargo" clippy --release $selection --all-targets $warnings
  done
else
  skip clippy "not installed; run \`rustup component add clippy\`"
fi

if command -v clang-format >/dev/null; then
  # The layout of driver.h is manual: its comments are tables.
  git ls-files '*.c' '*.cc' '*.h' '*.hpp' | grep -vx driver/include/driver.h |
    xargs clang-format --style=file:driver/.clang-format --dry-run --Werror
else
  skip clang-format "not installed; run \`apt-get install clang-format\`"
fi

if command -v "$go" >/dev/null; then
  for module in driver/go engines/go engines/servers benches/redcon tests/resp/go-redis tests/hostile/go; do
    (cd $module && found=$(gofmt -l .) && [ -z "$found" ] && "$go" vet ./...) || {
      echo "$module: gofmt -l or go vet reported a problem" >&2
      exit 1
    }
  done
else
  skip "gofmt and go vet" "Go is not installed; https://go.dev/dl"
fi
