"""Tables of session and sliding windows: open and closed windows are read as one table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.operators.windows.windows import WindowKeys
from potok.snapshots.rows.layout import layouts_of, load_layouts
from potok.snapshots.table_view import WindowedKey
from potok.topology.inference.infer import infer
from potok.topology.nodes.windows import Session, Sliding

TIMES: dict[str, Any] = {"retention_ms": 10_000}


def program() -> StreamsBuilder:
    builder = StreamsBuilder("q")
    grouped = builder.stream("t").group_by_key()
    grouped.windowed_by(Session(10, **TIMES)).count(name="counts")
    grouped.windowed_by(Session(10, **TIMES)).collect_list(name="lists")
    grouped.windowed_by(Session(10, **TIMES)).count(name="base").map_values(lambda v: v, name="derived")
    grouped.windowed_by(Sliding(5, **TIMES)).count(name="sliding")
    return builder


@pytest.fixture(params=[1, 3])
def driver(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    """Key a has one closed session and two open ones."""
    with InProcess(program(), shards=request.param) as found:
        for at in (100, 105, 500, 520):
            found.send("t", at, "a", timestamp=at)
        found.send("t", 1, "ab", timestamp=515)
        found.run()
        yield found


@pytest.mark.parametrize("table", ["counts", "derived"])
def test_open_and_closed_sessions_are_read_together(driver: InProcess, table: str) -> None:
    assert driver.table(table).all() == {
        WindowedKey("a", 100, 105): 2,
        WindowedKey("a", 500, 500): 1,
        WindowedKey("a", 520, 520): 1,
        WindowedKey("ab", 515, 515): 1,
    }
    assert len(driver.table(table)) == 4 and driver.table(table).windowed


def test_cells_of_objects_are_read(driver: InProcess) -> None:
    assert driver.table("lists").windows("a") == [
        (WindowedKey("a", 100, 105), [100, 105]),
        (WindowedKey("a", 500, 500), [500]),
        (WindowedKey("a", 520, 520), [520]),
    ]


def test_a_session_is_found_by_any_time_from_its_start_to_its_end(driver: InProcess) -> None:
    table = driver.table("counts")
    assert [table.get("a", at=at) for at in (99, 100, 103, 105, 106, 520)] == [None, 2, 2, 2, None, 1]
    assert table.get("a", at=datetime(1970, 1, 1, 0, 0, 0, 101_000, tzinfo=UTC)) == 2
    assert table.window("a", 101) == (WindowedKey("a", 100, 105), 2)
    assert table.get("nobody", "none", at=100) == table.get("nobody", "none") == "none"


def test_without_a_time_the_latest_session_is_returned(driver: InProcess) -> None:
    assert driver.table("counts").window("a") == (WindowedKey("a", 520, 520), 1)
    assert driver.table("lists").get("a") == [520]


def test_sessions_of_a_key_are_selected_by_their_start(driver: InProcess) -> None:
    table = driver.table("counts")
    assert [window.start_ms for window, _ in table.windows("a", 100, 500)] == [100]
    assert [window.start_ms for window, _ in table.windows("a", 101)] == [500, 520]


def test_a_range_is_a_range_of_keys(driver: InProcess) -> None:
    assert {window.key for window in driver.table("counts").range("ab")} == {"ab"}
    assert {window.key for window in driver.table("lists").range("a", "ab")} == {"a"}


def test_the_last_sliding_window_that_contains_a_time_is_returned(driver: InProcess) -> None:
    table = driver.table("sliding")
    assert table.windows("a", end=110) == [
        (WindowedKey("a", 95, 100), 1),
        (WindowedKey("a", 100, 105), 2),
        (WindowedKey("a", 101, 106), 1),
    ]
    assert [table.get("a", at=at) for at in (95, 100, 101, 107)] == [1, 2, 1, None]


def test_all_tables_are_read_at_one_batch(driver: InProcess) -> None:
    found = driver.tables.snapshot()
    assert found["counts"] == found["base"] == found["derived"]


def test_layouts_say_where_open_windows_are() -> None:
    topology = program().build()
    found = load_layouts(layouts_of(topology, infer(topology)))
    assert {name: (layout.window, layout.open, layout.form) for name, layout in found.items()} == {
        "counts": ("session", True, "columns"),
        "lists": ("session", True, "objects"),
        "base": ("session", True, "columns"),
        "derived": ("session", False, "objects"),
        "sliding": ("sliding", True, "objects"),
    }


@pytest.mark.parametrize("kind", ["fixed", "sliding", "session"])
def test_the_key_of_a_cell_encodes_its_window(kind: str) -> None:
    keys = WindowKeys(kind, 10)
    cell_key = keys.cell_key(b"key", -5, 5)
    assert keys.inner(cell_key) == b"key" and keys.bounds(cell_key) == (-5, 5)
    assert keys.holds((-5, 5), 5) is (kind != "fixed")
