#!/bin/sh
# Check format and lint, then run the type checker beside the tests. Arguments are passed to pytest.
set -eu
cd "$(dirname "$0")/.."

# Tests start hundreds of processes; without bytecode files each would compile everything again.
unset PYTHONDONTWRITEBYTECODE

if [ "${CI:-}" = true ]; then
  ./scripts/install-browser.sh
  ./scripts/servers.sh
fi
./scripts/check.sh format
./scripts/check.sh lint
types=$(mktemp)
trap 'rm -f "$types"' EXIT
./scripts/check.sh types >"$types" 2>&1 &
checking=$!
printf '\n== tests\n'
if [ $# -eq 0 ]; then
  .venv/bin/python tests/class_archive.py
  # One more than the two cores: much of the time is spent waiting for servers and for processes to start.
  set -- -n 3 --dist loadgroup --no-loadscope-reorder
fi
failed=
.venv/bin/python -m pytest "$@" || failed="$failed tests"
wait "$checking" || failed="$failed types"
cat "$types"
if [ -n "$failed" ]; then
  printf '\nfailed:%s\n' "$failed" >&2
  exit 1
fi
printf '\nformat, lint, types and tests: all passed\n'
