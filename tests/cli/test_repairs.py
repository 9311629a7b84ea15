"""What a message says to type is typed as it stands, and then what failed works."""

from __future__ import annotations

import pytest
from tests.examples.test_commands_in_messages import commands


@pytest.mark.parametrize(
    ("before", "failing", "repair"),
    [
        (["topics create other"], "consume orders", "topics create orders --partitions 4"),
        (["topics create orders"], "topics create orders", "topics delete orders"),
        (["topics create orders"], "topics compact orders", "topics create orders --cleanup-policy compact"),
        (["topics create orders"], "groups show billing", "groups list"),
    ],
)
def test_the_command_of_a_hint_repairs_what_failed(potok, before: list[str], failing: str, repair: str) -> None:
    for words in before:
        assert potok(*words.split()).code == 0
    refused = potok(*failing.split())
    assert refused.code == 1
    assert repair.split() in list(commands(" ".join(refused.err.split())))
    if repair.startswith("topics create") and "topics create orders" in before:
        assert potok("topics", "delete", "orders", "--yes").code == 0
    assert potok(*repair.split(), stdin="y\n").code == 0
    if failing != "groups show billing":
        assert potok(*failing.split()).code == 0
