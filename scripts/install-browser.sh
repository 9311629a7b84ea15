#!/bin/sh
# Install the browser for the tests of the demo's web page from the system's packages, unless one is installed.
set -eu

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null 2>&1; then
    exit 0
  fi
done

if ! command -v apt-get >/dev/null 2>&1; then
  printf '%s\n' "no Chromium found: install it with the package manager of this system, then run this script again" >&2
  exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  as_root=sudo
fi
printf '%s\n' "installing Chromium for the browser tests"
$as_root apt-get update
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y --no-install-recommends chromium
