#!/bin/sh
# Format, lint and types. Stops at the first that fails.
set -eu
cd "$(dirname "$0")/.."

step() {
  printf '\n== %s\n' "$1"
  shift
  "$@"
}

step "format (make format mends it)" .venv/bin/python -m ruff format --check .
step "lint" .venv/bin/python -m ruff check .
step "types" .venv/bin/python -m mypy --strict
