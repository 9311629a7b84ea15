"""How often a record reaches a sink if the process dies."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from potok.errors import TopologyError


class UnknownGuarantee(TopologyError):
    """An unknown guarantee."""

    def __init__(self, given: object) -> None:
        super().__init__(
            f'there is no guarantee "{given}"',
            hint='write guarantee="exactly_once", "at_least_once" or "at_most_once"',
        )


class Guarantee(StrEnum):
    """What a sink promises about each record."""

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"

    @classmethod
    def of(cls, given: str) -> Guarantee:
        """Parse a name, with dashes or underscores."""
        try:
            return cls(given.replace("-", "_"))
        except (ValueError, AttributeError):
            raise UnknownGuarantee(given) from None

    @property
    def before_commit(self) -> bool:
        """Whether output is delivered before the commit of the ledger: then a crash repeats it, else a crash loses
        it."""
        return self is not Guarantee.AT_MOST_ONCE

    @property
    def note(self) -> str:
        """The addition to a description: empty for the default guarantee."""
        return "" if self is Guarantee.EXACTLY_ONCE else self.value


Atomicity = Literal["task", "batch"]
"""What becomes visible together of output that several tasks of a batch write."""


class UnknownAtomicity(TopologyError):
    """An unknown value of the option `atomic`."""

    def __init__(self, given: object) -> None:
        super().__init__(f'atomic cannot be "{given}"', hint='write atomic="task" or atomic="batch"')


def is_by_task(atomic: Atomicity) -> bool:
    """Whether tasks publish their output themselves."""
    if atomic not in ("task", "batch"):
        raise UnknownAtomicity(atomic)
    return atomic == "task"


GuaranteeName = Guarantee | Literal["exactly_once", "at_least_once", "at_most_once"]
"""A guarantee, or its name."""
