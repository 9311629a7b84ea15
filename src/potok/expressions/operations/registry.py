"""Every operation by style and name."""

from __future__ import annotations

from typing import Final

from potok.expressions.expr import CallStyle
from potok.expressions.operations.conditions import CONDITION_OPERATIONS
from potok.expressions.operations.instants import INSTANT_OPERATIONS
from potok.expressions.operations.membership import MEMBERSHIP_OPERATIONS
from potok.expressions.operations.numbers import NUMBER_OPERATIONS
from potok.expressions.operations.operation import Operation
from potok.expressions.operations.text import TEXT_OPERATIONS

OPERATIONS: Final[dict[tuple[CallStyle, str], Operation]] = {
    (operation.style, operation.name): operation
    for operation in (
        *CONDITION_OPERATIONS,
        *INSTANT_OPERATIONS,
        *MEMBERSHIP_OPERATIONS,
        *NUMBER_OPERATIONS,
        *TEXT_OPERATIONS,
    )
}

METHODS: Final = frozenset(name for style, name in OPERATIONS if style == "method")
"""The methods that a traced lambda may call."""
