"""A program that builds a topology and does nothing with it: it looks as if it had run, so it is told when it ends."""

from __future__ import annotations

import atexit
import os
import sys

from potok.errors import Location

_waiting: dict[int, tuple[str, Location, str]] = {}
"""Builders of the main program that nothing has run yet: name, location and the call to run them, by identity."""


def expect_use(builder: object, name: str, at: Location | None) -> None:
    """Take note of a builder, if the program that is being run made it: one that is imported has others to use it."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if at is not None and main is not None and os.path.abspath(at.file) == os.path.abspath(main):
        atexit.unregister(_say)
        atexit.register(_say)
        _waiting[id(builder)] = name, at, "potok.run(builder)"


def ends_with(builder: object, call: str) -> None:
    """Set the call that the hint suggests, for programs that create their builder indirectly."""
    if id(builder) in _waiting:
        name, at, _ = _waiting[id(builder)]
        _waiting[id(builder)] = name, at, call


def used(builder: object) -> None:
    _waiting.pop(id(builder), None)


def _say() -> None:
    failed = hasattr(sys, "last_value") or hasattr(sys, "last_exc")
    if failed or sys.flags.interactive:
        return
    for name, at, call in _waiting.values():
        print(
            f'the topology "{name}" was built, and nothing ran it\n'
            f"  at {at}\n"
            f"  hint: potok run {os.path.relpath(at.file)}, or end the program with {call}",
            file=sys.stderr,
        )
