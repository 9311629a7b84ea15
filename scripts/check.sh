#!/bin/sh
# Check format, lint and types, or those given by name; stop at the first failure.
set -eu
cd "$(dirname "$0")/.."

step() {
  printf '\n== %s\n' "$1"
  shift
  "$@"
}

for name in ${*:-format lint types}; do
  case $name in
    format) step "format (make format fixes it)" .venv/bin/python -m ruff format --check . ;;
    lint) step "lint" .venv/bin/python -m ruff check . ;;
    types) step "types" .venv/bin/python -m mypy --strict ;;
    *) printf '%s\n' "there is no check \"$name\": format, lint, types" >&2 && exit 2 ;;
  esac
done
