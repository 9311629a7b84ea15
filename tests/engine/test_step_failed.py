"""State that is whole, and of another shape than its step writes: whoever reads it says so in an error of ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kernels.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.engine.step_failed import StepFailed, naming_step
from potok.errors import PotokError
from potok.kernels.operator import Operator
from potok.state.cell import encode_cell
from potok.state.codec import dump_state
from potok.topology.nodes.windows import session, sliding, tumbling_ms

Program = Callable[[StreamsBuilder], None]


def counted(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().count(name="n").to_stream().to("out")


def folded(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().aggregate(list, lambda k, v, seen: [*seen, v], name="n")


def windowed(builder: StreamsBuilder) -> None:
    grouped = builder.stream("a").group_by_key().windowed_by(tumbling_ms(10, 0, 100))
    grouped.aggregate(list, lambda k, v, seen: [*seen, v], name="n")


def summed_by_window(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().windowed_by(tumbling_ms(10, 0, 100)).count(name="n")


def in_sessions(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().windowed_by(session(10)).count(name="n")


def in_sliding_windows(builder: StreamsBuilder) -> None:
    grouped = builder.stream("a").group_by_key().windowed_by(sliding(10))
    grouped.aggregate(list, lambda k, v, seen: [*seen, v], name="n")


def joined(builder: StreamsBuilder) -> None:
    builder.stream("a").join(builder.stream("b"), lambda one, two: [one, two], within=1_000).to("out")


def looked_up(builder: StreamsBuilder) -> None:
    builder.stream("a").join(builder.table("b", name="n"), lambda one, two: [one, two]).to("out")


def table_joined(builder: StreamsBuilder) -> None:
    builder.table("a", name="n").join(builder.table("b", name="m"), lambda one, two: [one, two], name="j")


def regrouped(builder: StreamsBuilder) -> None:
    builder.table("a", name="n").group_by(lambda k, v: (v % 3, v), pairs=True).count(name="m")


PROGRAMS = [
    counted,
    folded,
    windowed,
    summed_by_window,
    in_sessions,
    in_sliding_windows,
    joined,
    looked_up,
    table_joined,
    regrouped,
]
SHAPES: list[Any] = [7, "text", None, [], [1], (1, 2, 3, 4, 5, 6, 7), {"a": 1}, ("x", {}), b"bytes"]
DATA = [b"", *map(dump_state, SHAPES)]


def filled(program: Program) -> InProcess:
    builder = StreamsBuilder("q")
    program(builder)
    driver = InProcess(builder, shards=1)
    send(driver, 0)
    return driver


def send(driver: InProcess, at: int) -> None:
    for number in range(10):
        for topic in driver._topology.source_topics:
            driver.send(topic, number, f"k{number % 4}", timestamp=at + number)
    driver.run()


def reshape(driver: InProcess, data: bytes) -> None:
    """Write whole cells, as committed by the last batch, under all keys that there are."""
    store = driver._prepared.state.store(0)
    attempt = store.attempt()
    assert attempt is not None
    cell = encode_cell(attempt, data, None)
    tables = [table for table in store.tables() if not table.endswith("/deleted")]
    writes = [(table, [(key, cell) for key, _ in store.page(table, limit=1_000)]) for table in tables]
    assert any(rows for _, rows in writes)
    store.put_many(attempt, writes)


def check_error(work: Callable[[], object]) -> None:
    """Some shapes happen to fit; whatever is raised at the others is an error of ours, with a hint."""
    hint = "it fits"
    try:
        work()
    except PotokError as error:
        hint = error.hint
    assert hint


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_query_that_meets_state_of_another_shape_stops_with_an_error_of_ours(program: Program) -> None:
    with filled(program) as driver:
        for number, data in enumerate(DATA, 1):
            reshape(driver, data)
            check_error(partial(send, driver, 20 * number))


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p is not joined])
def test_a_reader_that_meets_cells_of_another_shape_raises_an_error_of_ours(program: Program) -> None:
    with filled(program) as driver:
        table = driver.table("n")
        looks: list[Callable[[], object]] = [table.all, table.__len__, lambda: table.range("a", "z")]
        looks.append((lambda: table.windows("k1")) if table.windowed else lambda: table.get("k1"))
        for data in DATA:
            reshape(driver, data)
            for look in looks:
                check_error(look)


def test_the_error_names_the_step_the_shard_and_the_table() -> None:
    with filled(folded) as driver:
        reshape(driver, dump_state(7))
        with pytest.raises(PotokError, match='the state of table "n" holds a cell of another shape'):
            driver.table("n").get("k1")
        with pytest.raises(
            StepFailed, match='step "n" cannot go on with the state of its shard 0: TypeError'
        ) as raised:
            send(driver, 20)
        assert "potok/kernels/" in raised.value.message
        assert "potok run PROGRAM --shadow" in raised.value.hint


def test_numbers_are_not_read_from_a_cell_that_holds_something_longer() -> None:
    with filled(counted) as driver:
        reshape(driver, bytes(200))
        with pytest.raises(PotokError, match='table "n"'):
            driver.table("n").all()
        with pytest.raises(PotokError, match='the state of table "n" is damaged'):
            send(driver, 20)


def test_what_a_function_of_the_user_raises_stays_what_it_is() -> None:
    def fails(self: Operator) -> None:
        raise ValueError("of the user")

    with pytest.raises(ValueError, match="of the user"), naming_step(0):
        fails(Operator("s", None))  # type: ignore[arg-type]
