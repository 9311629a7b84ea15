#!/bin/sh
# The browser that the tests of the demo's page drive, from the system's packages; does nothing where there is one.
set -eu

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null 2>&1; then
    exit 0
  fi
done

if ! command -v apt-get >/dev/null 2>&1; then
  printf '%s\n' "no Chromium found: install it with the packages of this system, then run this again" >&2
  exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  as_root=sudo
fi
printf '%s\n' "installing Chromium for the browser tests"
$as_root apt-get update
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y --no-install-recommends chromium
