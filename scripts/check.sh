#!/bin/sh
# Check format, lint and types; stop at the first failure.
set -eu
cd "$(dirname "$0")/.."

step() {
  printf '\n== %s\n' "$1"
  shift
  "$@"
}

step "format (make format fixes it)" .venv/bin/python -m ruff format --check .
step "lint" .venv/bin/python -m ruff check .
step "types" .venv/bin/python -m mypy --strict
