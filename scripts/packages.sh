#!/usr/bin/env bash
# Installs Debian packages that are missing: scripts/packages.sh PACKAGE...
#
# Prints the packages before it installs them, and starts none of their services. NO_INSTALL=1, or a user who is neither root nor allowed to use sudo without
# a password, prints the install command instead. Never fails: the build reports what it cannot build.
set -euo pipefail

command -v dpkg >/dev/null && command -v apt-get >/dev/null || exit 0
missing=
for name in "$@"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) || status=
  [ "$status" = installed ] || missing="$missing $name"
done
[ -n "$missing" ] || exit 0

if [ "${NO_INSTALL:-}" = 1 ]; then
  echo "missing Debian packages, not installed (NO_INSTALL=1):$missing" >&2
  exit 0
elif [ "$(id -u)" = 0 ]; then
  as=
elif sudo -n true 2>/dev/null; then
  as="sudo -n"
else
  echo "missing Debian packages; to install them, run \`sudo apt-get install$missing\`" >&2
  exit 0
fi

echo "installing Debian packages (NO_INSTALL=1 skips this):$missing" >&2
get() { $as env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=60 "$@" >/dev/null 2>&1; }
# Servers come with services, which would be started: this file forbids it (invoke-rc.d(8)).
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ] && printf '#!/bin/sh\nexit 101\n' | $as tee "$policy" >/dev/null 2>&1; then
  trap '$as rm -f "$policy"' EXIT
  $as chmod 755 "$policy"
fi
# shellcheck disable=SC2086 # the names are words
get install -y --no-install-recommends $missing ||
  { get update && get install -y --no-install-recommends $missing; } ||
  echo "could not install all of them; to see why, run \`apt-get install$missing\`" >&2
