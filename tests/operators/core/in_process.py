"""The driver of the testing kit, with what tests of single steps ask for."""

from __future__ import annotations

from potok.testing.driver import TestDriver


class InProcess(TestDriver):
    """A `TestDriver` that knows its dead letters as pairs."""

    __test__ = False

    def reasons(self) -> list[tuple[str, str]]:
        """The dead letters as (step, reason), in order."""
        return sorted((letter.step, letter.reason) for letter in self.dead_letters())
