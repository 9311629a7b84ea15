#!/bin/sh
# Check format, lint and types, then run the tests, those without Spark first. Arguments are passed to pytest.
set -eu
cd "$(dirname "$0")/.."

# Tests start hundreds of processes; without bytecode files each would compile everything again.
unset PYTHONDONTWRITEBYTECODE

if [ "${CI:-}" = true ]; then
  ./scripts/install-browser.sh
  ./scripts/servers.sh
fi
./scripts/check.sh
printf '\n== tests\n'
if [ $# -eq 0 ]; then
  .venv/bin/python tests/class_archive.py
  set -- -n 2 --dist loadgroup --no-loadscope-reorder
fi
.venv/bin/python -m pytest "$@"
printf '\nformat, lint, types and tests: all passed\n'
