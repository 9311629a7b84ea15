"""Warn at exit about a program that builds a topology and never runs it."""

from __future__ import annotations

import atexit
import os
import sys

from potok.errors import Location

_waiting: dict[int, tuple[str, Location, str]] = {}
"""Builders of the main program that have not run yet: name, location and the call that runs them, by identity."""


def expect_use(builder: object, name: str, at: Location | None) -> None:
    """Register a builder that the main program made. A builder of an imported module is used by its importer."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if at is not None and main is not None and os.path.abspath(at.file) == os.path.abspath(main):
        atexit.unregister(_warn)
        atexit.register(_warn)
        _waiting[id(builder)] = name, at, "potok.run(builder)"


def ends_with(builder: object, call: str) -> None:
    """Set the call that the hint suggests, for programs that create their builder indirectly."""
    if id(builder) in _waiting:
        name, at, _ = _waiting[id(builder)]
        _waiting[id(builder)] = name, at, call


def used(builder: object) -> None:
    _waiting.pop(id(builder), None)


def _warn() -> None:
    failed = hasattr(sys, "last_value") or hasattr(sys, "last_exc")
    if failed or sys.flags.interactive:
        return
    for name, at, call in _waiting.values():
        print(
            f'the topology "{name}" was built, but never run\n'
            f"  at {at}\n"
            f"  hint: potok run {os.path.relpath(at.file)}, or end the program with {call}",
            file=sys.stderr,
        )
