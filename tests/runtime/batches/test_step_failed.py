"""State that is whole, and of another shape than its step writes: whoever reads it says so in an error of ours."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators.core.in_process import InProcess
from potok import list_store, map_store, value_store, window_store
from potok.dsl.builder import StreamsBuilder
from potok.errors import PotokError
from potok.faust import App
from potok.machine import MachineError
from potok.operators.core.operator import Operator
from potok.permissions import write_private
from potok.records.formats.json.encode import encode_typed
from potok.records.formats.json.json_format import JsonFormat
from potok.records.rows import rows_of
from potok.runtime.batches.step_failed import StepFailed, naming_step
from potok.state.cell import encode_cell
from potok.state.codec import dump_state
from potok.topology.nodes.windows import session, sliding, tumbling_ms

Program = Callable[[StreamsBuilder], object]


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


def deduplicated(builder: StreamsBuilder) -> None:
    def process(key: Any, value: Any, ctx: Any) -> list[Any]:
        ctx.store("n").set((ctx.store("n").get() or 0) + value)
        ctx.store("seen").append(value)
        ctx.store("by")[value] = value
        ctx.store("recent").put(ctx.timestamp, value)
        return [ctx.store("n").get(), ctx.store("seen")[-1], ctx.store("by")[value], ctx.store("recent").fetch(0, 99)]

    stores = {
        "n": value_store(readable=True),
        "seen": list_store(),
        "by": map_store(),
        "recent": window_store("1 second"),
    }
    made = builder.stream("a").process(process, stores=stores, name="p")
    made.table("n").to_stream().to("changes")
    made.to("out")


def with_timers(builder: StreamsBuilder) -> None:
    def process(key: Any, value: Any, ctx: Any) -> None:
        ctx.store("n").set(value)
        ctx.schedule(ctx.timestamp + 5)

    def on_timer(key: Any, at: int, ctx: Any) -> list[Any]:
        return [ctx.store("n").get()]

    builder.stream("a").process(process, on_timer=on_timer, stores={"n": value_store()}, name="p").to("out")


def suppressed(builder: StreamsBuilder) -> None:
    grouped = builder.stream("a").group_by_key().windowed_by(tumbling_ms(10, 0, 100))
    grouped.count(name="n").emit_final(name="final").to_stream().to("out")


def sent_now_and_then(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().count(name="n").emit_every("5 ms").to_stream().to("out")


def joined_by_foreign_key(builder: StreamsBuilder) -> None:
    left, right = builder.table("a", name="n"), builder.table("b", name="m")
    left.join(right, lambda one, two: [one, two], on=lambda k, v: f"k{v % 4}", name="j").to_stream().to("out")


def counted_by_agents(_: StreamsBuilder) -> App:
    app = App("q")
    counts, last = app.Table("n", default=int), app.Table("last", default=list).tumbling(10, expires=100)

    @app.agent(app.topic("a", key_type=str, value_type=int))
    async def count(stream: Any) -> Any:
        async for key, value in stream.items():
            counts[key] += value
            last[key] = [*last[key].value(), value]

    return app


def looked_up_in_versions(builder: StreamsBuilder) -> None:
    prices = builder.table("b", name="n", history="7 days")
    builder.stream("a").join(prices, lambda one, two: [one, two]).to("out")


PROGRAMS = [
    deduplicated,
    with_timers,
    suppressed,
    sent_now_and_then,
    joined_by_foreign_key,
    looked_up_in_versions,
    counted_by_agents,
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
    driver = InProcess(program(builder) or builder, shards=1)  # type: ignore[arg-type]
    send(driver, 0)
    return driver


def send(driver: InProcess, at: int) -> None:
    for number in range(10):
        for topic in driver._topology.source_topics:
            driver.send(topic, number, f"k{number % 4}", timestamp=at + number)
    driver.run()


def reshape(driver: InProcess, data: bytes, only: str = "") -> None:
    """Write whole cells, as committed by the last batch, under all keys that there are, of one table or all."""
    store = driver._prepared.state.store(0)
    attempt = store.attempt()
    assert attempt is not None
    cell = encode_cell(attempt, data, None)
    tables = [table for table in store.tables() if not table.endswith("/deleted") and only in ("", table)]
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


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p not in (joined, with_timers)])
def test_a_reader_that_meets_cells_of_another_shape_raises_an_error_of_ours(program: Program) -> None:
    with filled(program) as driver:
        tables = [driver.table(name) for name in driver.tables.layouts()]
        assert tables
        for data in DATA:
            reshape(driver, data)
            for table in tables:
                looks: list[Callable[[], object]] = [table.all, table.__len__, partial(table.range, "a", "z")]
                looks.append(partial(table.windows if table.windowed else table.get, "k1"))
                for look in looks:
                    check_error(look)


@pytest.mark.parametrize(
    ("program", "table", "reported"),
    [
        (deduplicated, "p/seen", 'table "p/seen"'),
        (deduplicated, "p/by", 'table "p/by"'),
        (deduplicated, "p/recent", 'table "p/recent"'),
        (counted_by_agents, "n", 'table "n"'),
        (counted_by_agents, "last", 'table "last"'),
        (suppressed, "final", 'step "final"'),
    ],
)
def test_state_of_another_shape_stops_the_query_and_makes_no_dead_letters(
    program: Program, table: str, reported: str
) -> None:
    with filled(program) as driver:
        reshape(driver, dump_state((1,)), table)
        with pytest.raises(PotokError, match=reported):
            send(driver, 3)
        assert driver.dead_letters() == []


def test_the_error_names_the_step_the_shard_and_the_table() -> None:
    with filled(folded) as driver:
        reshape(driver, dump_state(7))
        with pytest.raises(PotokError, match='the state of table "n" holds a cell that does not fit the table'):
            driver.table("n").get("k1")
        with pytest.raises(StepFailed, match='step "n" cannot process the state of shard 0: TypeError') as raised:
            send(driver, 20)
        assert "potok/operators/" in raised.value.message
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


class Trips(Operator):
    """A step that calls a function of ours which raises."""

    def __init__(self, fails: Callable[[], object]) -> None:
        super().__init__("s", None)  # type: ignore[arg-type]
        self.fails = fails

    def finish(self) -> None:
        self.fails()


@pytest.mark.parametrize("fails", [partial(rows_of, 7), partial(encode_typed, pa.array([1]), pc.utf8_upper)])
def test_a_step_that_reads_is_named_without_a_shard(fails: Callable[[], object]) -> None:
    reported = 'step "s" cannot process its records'
    with pytest.raises(StepFailed, match=reported) as raised, naming_step(None):
        Trips(fails).finish()
    assert "potok/records/" in raised.value.message
    assert "report this message" in raised.value.hint


def test_operating_system_errors_in_a_step_are_reported_with_a_hint(tmp_path: Path) -> None:
    step = Trips(partial(write_private, tmp_path / ("n" * 300), b""))
    with pytest.raises(MachineError, match=r'while step "s" was running: File name too long: .*nnn') as raised:
        naming(step.finish)
    assert "shorter name" in raised.value.hint


@pytest.mark.parametrize(
    ("error", "reported", "hint"),
    [
        (OSError(errno.EMFILE, "Too many open files", "x.log"), "Too many open files: x.log", "ulimit -n"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device", "free some space"),
        (OSError("odd"), "odd", "check the file system"),
        (MemoryError(), "out of memory while writing", "max_batch_bytes"),
    ],
)
def test_an_error_of_the_machine_says_what_to_do(error: OSError | MemoryError, reported: str, hint: str) -> None:
    made = MachineError("writing", error)
    assert reported in made.message
    assert hint in made.hint


def naming(work: Callable[[], object]) -> None:
    with naming_step(0):
        work()


def test_an_undecodable_record_is_a_dead_letter_and_the_others_are_processed(monkeypatch: Any) -> None:
    decode = JsonFormat.decode

    def trips(self: JsonFormat, values: pa.Array, *more: Any) -> Any:
        if b'"poison"' in values.to_pylist():
            raise KeyError("what nobody thought of")
        return decode(self, values, *more)

    monkeypatch.setattr(JsonFormat, "decode", trips)
    builder = StreamsBuilder("q")
    builder.stream("a").to("out")
    with InProcess(builder) as driver:
        for value in ("one", "poison", "two"):
            driver.send("a", value)
        driver.run()
        assert [record.value for record in driver.read("out")] == ["one", "two"]
        [letter] = driver.dead_letters()
    assert (letter.reason, letter.value) == ("decode", b'"poison"')
    assert letter.error == "cannot be read as json: KeyError: 'what nobody thought of'"
