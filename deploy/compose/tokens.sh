#!/bin/sh
# Make the secrets of compose.yaml, unless they exist: an admin token, which is printed once, a token for Prometheus,
# and the password of Grafana. Needs potok on the PATH (pip install "potok[server]").
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets

if [ ! -e secrets/tokens.toml ]; then
  printf '%s\n' "the token of the administrator:"
  potok tokens add admin --scope admin --file secrets/tokens.toml
  potok tokens add prometheus --scope read --file secrets/tokens.toml >secrets/metrics-token
fi
if [ ! -e secrets/grafana-password ]; then
  python3 -c 'import secrets; print(secrets.token_urlsafe(18), end="")' >secrets/grafana-password
fi
# Containers read these files as users of their own; the directory keeps other users of this machine out.
chmod 0644 secrets/tokens.toml secrets/metrics-token secrets/grafana-password
