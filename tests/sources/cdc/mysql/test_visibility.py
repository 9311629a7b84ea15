"""A chunk that does not see a transaction which was streamed before its window is read again."""

from __future__ import annotations

import pytest

from potok.sources.cdc.landing.landing import CapturePosition
from potok.sources.cdc.mysql.positions import VisibleLog
from potok.sources.cdc.mysql.transactions import Transactions

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4a22fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.fixture
def transactions() -> Transactions:
    position = CapturePosition({}, {"file": "log.000001", "pos": 4, "gtid": "", "done": 0})
    return Transactions(None, None, None, position)  # type: ignore[arg-type]


def test_before_the_first_transaction_of_a_session_every_chunk_is_recent_enough(transactions: Transactions) -> None:
    assert transactions.seen is None
    assert not transactions.ended_before(VisibleLog((1, 4)), transactions.seen)


@pytest.mark.parametrize(("end", "ended_before"), [((1, 99), True), ((1, 100), False), ((2, 4), False)])
def test_a_chunk_of_mariadb_sees_the_log_up_to_its_end(
    transactions: Transactions, end: tuple[int, int], ended_before: bool
) -> None:
    assert transactions.ended_before(VisibleLog(end), VisibleLog((1, 100), "0-1-7")) is ended_before


@pytest.mark.parametrize(
    ("executed", "ended_before"),
    [(f"{A}:1-5", False), (f"{A}:1-4", True), ("", True), (f"{A}:1-9,{B}:1", False), (f"{B}:1-9", True)],
)
def test_a_chunk_of_mysql_sees_the_executed_transactions(
    transactions: Transactions, executed: str, ended_before: bool
) -> None:
    visible, seen = VisibleLog((1, 500), executed), VisibleLog((1, 100), f"{A}:1-5")
    assert transactions.ended_before(visible, seen) is ended_before
