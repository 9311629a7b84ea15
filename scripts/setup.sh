#!/bin/sh
# Create .venv and install Potok with its development tools. Can be run again after an interruption.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "potok: $*"; }
stop() {
  printf '%s\n' "potok: $1" "       $2" >&2
  exit 1
}

# A name on the PATH may be a shim for a version that is not installed, so each candidate is started.
find_python() {
  for name in ${SETUP_PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
    if "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; then
      command -v "$name"
      return
    fi
  done
  stop "no Python 3.11, 3.12 or 3.13 on the PATH" \
    "install one (Debian, Ubuntu: sudo apt install python3 python3-venv; macOS: brew install python@3.13)"
}

works() { [ -x .venv/bin/python ] && .venv/bin/python -c '' >/dev/null 2>&1; }

make_venv() {
  python=$(find_python)
  say "creating .venv with $("$python" --version)"
  rm -rf .venv
  if has_uv; then
    uv venv --quiet --python "$python" .venv && return
  fi
  "$python" -m venv .venv && return
  rm -rf .venv
  stop "$python cannot create a virtual environment" \
    "ensurepip is missing: install it (Debian, Ubuntu: sudo apt install python3-venv) and run this again"
}

has_uv() { uv --version >/dev/null 2>&1; }

install() {
  say "installing; the first time this downloads about 700 MB, mostly Spark and a Java runtime"
  if has_uv; then
    uv pip install --python .venv/bin/python --editable '.[all]' --group dev && return
    say "uv failed; trying pip"
  fi
  .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip --upgrade
  # Dependency groups need pip 25.1.
  .venv/bin/python -m pip install --upgrade 'pip>=25.1'
  .venv/bin/python -m pip install --editable '.[all]' --group dev
}

works || make_venv
install || stop "the installation failed" "see the messages above; fix the cause and run the same command again"
say "ready"
