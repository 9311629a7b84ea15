"""Tables of agents in memory: what is read, remembered, taken back and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from potok.operators.agents.context import Running
from potok.operators.agents.tables import ABSENT, OpenTable, OutsideOfKey
from potok.state.fence import Attempt, Fence
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.state.session import StateSession
from potok.topology.agents import TablePart


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    store = LmdbStore(tmp_path / "0")

    def open_(batch: int = 1, *, spread: bool = False, default: Any = None) -> tuple[Running, OpenTable, StateSession]:
        attempt = Attempt(1, batch)
        session = StateSession(store, Fence(attempt, Attempt(1, batch - 1) if batch > 1 else None))
        running = Running("app", {}, 0, [])
        return running, OpenTable(TablePart("t", make_default=default), running, session, spread=spread), session

    return open_


def test_what_was_set_is_there_in_the_next_batch(opened: Any) -> None:
    _, table, session = opened()
    table.set("a", 1)
    table.set(1, "number")
    table.set(True, "truth")
    table.write(table.changes())
    session.commit()
    _, table, _ = opened(2)
    assert [table.get(key) for key in ("a", 1, True, "b")] == [1, "number", "truth", ABSENT]


def test_what_a_turn_did_is_taken_back_and_no_more(opened: Any) -> None:
    running, table, _ = opened(default=list)
    running.turn = 1
    table.get_or_default("a").append(1)
    running.turn, running.undo = 2, []
    table.get_or_default("a").append(2)
    table.set("b", 3)
    running.take_back(0)
    assert table.get("a") == [1]
    assert table.get("b") is ABSENT


def test_a_value_that_is_put_under_two_keys_is_two_values(opened: Any) -> None:
    _, table, _ = opened()
    value = [1]
    table.set("a", value)
    table.set("b", value)
    table.get("a").append(2)
    assert (table.get("b"), value) == ([1], [1])


def test_reading_a_row_writes_nothing_and_an_unchanged_default_is_not_stored(opened: Any) -> None:
    _, table, session = opened(default=list)
    table.set("a", [1])
    table.get_or_default("b")
    table.write(table.changes())
    session.commit()
    _, table, _ = opened(2, default=list)
    assert [table.get_or_default(key) for key in ("a", "b")] == [[1], []]
    assert table.changes() == []


def test_rows_are_those_of_the_cells_and_of_this_batch(opened: Any) -> None:
    _, table, session = opened()
    for key in ("a", "b", "c"):
        table.set(key, key.upper())
    table.write(table.changes())
    session.commit()
    _, table, _ = opened(2)
    table.delete("b")
    table.set("d", "D")
    assert list(table.rows()) == [("a", "A"), ("c", "C"), ("d", "D")]
    with pytest.raises(KeyError):
        table.delete("b")


def test_a_spread_table_has_the_row_of_the_record_alone(opened: Any) -> None:
    running, table, _ = opened(spread=True)
    running.key = "a"
    table.set("a", 1)
    for ask in (lambda: table.get("b"), lambda: list(table.rows())):
        with pytest.raises(OutsideOfKey):
            ask()


def test_what_is_not_data_is_refused_by_the_call_that_would_keep_it(opened: Any) -> None:
    _, table, _ = opened()
    for key, value in (("a", object()), ("b", [lambda: 0]), (object(), 1), (None, 1)):
        with pytest.raises(Exception, match=r"no data|cannot be|None"):
            table.set(key, value)


def test_rows_that_were_read_ahead_are_the_same_rows(opened: Any) -> None:
    _, table, session = opened()
    table.set("a", 1)
    table.write(table.changes())
    session.commit()
    _, table, _ = opened(2)
    table.read_ahead(["a", "b", 3, None, "\ud800"], [0] * 5)
    session.store.close()
    assert (table.get("a"), table.get("b")) == (1, ABSENT)
