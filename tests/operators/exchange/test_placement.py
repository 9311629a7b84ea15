"""Where the cells of each kind of step live: moved to other shards in the middle, they do what they would have done."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import potok
from operators.core.in_process import InProcess
from potok import Processor, StreamsBuilder, milliseconds, session, sliding, value_store
from potok.operators.exchange.placement import own_tables, placements
from potok.operators.patterns import open_runs
from potok.patterns import cep
from potok.runtime.operations.reshard import reshard
from potok.topology import nodes
from potok.topology.inference.infer import infer
from potok.topology.nodes.windows import tumbling_ms

Make = Callable[[Any], None]
"""Adds steps to a builder."""


class WallTimers(Processor):
    seen = value_store(default=0)

    def process(self, key: Any, value: Any, ctx: Any) -> None:
        self.seen.set(self.seen.get() + 1)
        ctx.schedule(after=60_000, clock="wall")
        ctx.schedule(at=ctx.timestamp + 500, name="later")

    def on_timer(self, key: Any, at: Any, ctx: Any) -> None:
        ctx.forward([ctx.timer, self.seen.get()])


def numbers(builder: Any, topic: str = "t") -> Any:
    """Keys are numbers too: the key of a row with its window has another form than the key alone."""
    return builder.stream(topic, key=int, value=int)


def aggregate(builder: Any) -> None:
    numbers(builder).group_by_key().sum(name="x")


def fold(builder: Any) -> None:
    builder.stream("t").group_by_key().collect_list(name="x")


def tumbling(builder: Any) -> None:
    numbers(builder).group_by_key().windowed_by(tumbling_ms(50, 0, 100)).sum(name="x")


def hopping(builder: Any) -> None:
    windows = potok.hopping(milliseconds(50), milliseconds(20), retention=milliseconds(100))
    builder.stream("t").group_by_key().windowed_by(windows).collect_list(name="x")


def sessions(builder: Any) -> None:
    numbers(builder).group_by_key().windowed_by(session(milliseconds(20), retention=milliseconds(200))).sum(name="x")


def sliding_windows(builder: Any) -> None:
    numbers(builder).group_by_key().windowed_by(sliding(milliseconds(30), retention=milliseconds(200))).sum(name="x")


def derived(builder: Any) -> None:
    windows = tumbling_ms(50, 0, 100)
    numbers(builder).group_by_key().windowed_by(windows).sum().filter(lambda v: v > 0, name="x")


def derived_sessions(builder: Any) -> None:
    windows = session(milliseconds(30), retention=milliseconds(200))
    numbers(builder).group_by_key().windowed_by(windows).sum().map_values(lambda v: v + 1, name="x")


def time_to_live(builder: Any) -> None:
    builder.table("t", key=int, value=int, ttl=milliseconds(150), name="x").to_stream().to("out")


def versions(builder: Any) -> None:
    builder.table("t", key=int, value=int, history=milliseconds(150), name="x")


def final_results(builder: Any) -> None:
    table = numbers(builder).group_by_key().windowed_by(tumbling_ms(50, 0, 100)).sum()
    table.emit_final(name="x").to_stream().to("out")


def final_results_of_untyped_keys(builder: Any) -> None:
    table = builder.stream("t").group_by_key().windowed_by(tumbling_ms(50, 0, 100)).count()
    table.emit_final(name="x").to_stream().to("out")


def now_and_then(builder: Any) -> None:
    numbers(builder).group_by_key().sum().emit_every(milliseconds(180), name="x").to_stream().to("out")


def joined_tables(builder: Any) -> None:
    left, right = builder.table("t", key=int, value=int), builder.table("u", key=int, value=int)
    left.outer_join(right, lambda one, other: [one, other], name="x")


def joined_windows(builder: Any) -> None:
    left, right = (numbers(builder, topic).group_by_key().windowed_by(tumbling_ms(50, 0, 100)).sum() for topic in "tu")
    left.outer_join(right, lambda one, other: [one, other], name="x").to_stream().to("out")


def groups(builder: Any) -> None:
    builder.table("t", key=int, value=int).group_by(lambda k, v: v % 7).count(name="x")


def foreign_keys(builder: Any) -> None:
    left, right = builder.table("t", key=int, value=int), builder.table("u", key=int, value=int)
    left.left_join(right, lambda one, other: [one, other], on=lambda v: v % 30, name="x")


def joined_streams(builder: Any) -> None:
    left, right = numbers(builder), numbers(builder, "u")
    left.outer_join(right, lambda one, other: [one, other], within=milliseconds(60), name="x").to("out")


def looked_up(builder: Any) -> None:
    table = numbers(builder, "u").group_by_key().sum().filter(lambda v: v % 2 == 0)
    numbers(builder).left_join(table, lambda one, other: [one, other], name="x").to("out")


def looked_back(builder: Any) -> None:
    table = builder.table("u", key=int, value=int)
    pairs = lambda one, other: [one, other]
    numbers(builder).left_join(table, pairs, grace=milliseconds(60), name="x").to("out")


def timers(builder: Any) -> None:
    numbers(builder).process(WallTimers(), name="x").to("out")


def in_order(builder: Any) -> None:
    numbers(builder).ordered(grace=milliseconds(60), name="x").to("out")


def open_matches(builder: Any) -> None:
    low, high = cep.event("low", lambda v: v < 7), cep.event("high", lambda v: v > 7)
    pattern = low.followed_by(high).within(milliseconds(90))
    found = numbers(builder).group_by_key().match(pattern, grace=milliseconds(10), name="x")
    found.to("out")
    found.timeouts.to("over")


KEPT: dict[Make, set[str]] = {
    aggregate: {"x"},
    fold: {"x"},
    tumbling: {"x/windows", "x/horizon"},
    hopping: {"x/windows", "x/horizon"},
    sessions: {"x", "x/open", "x/closing", "x/by_end"},
    sliding_windows: {"x", "x/open", "x/closing", "x/by_end"},
    derived: {"x"},
    derived_sessions: {"x"},
    time_to_live: {"x", "x/since"},
    versions: {"x", "x/versions", "x/by_time"},
    final_results: {"x", "x/due"},
    final_results_of_untyped_keys: {"x", "x/due"},
    now_and_then: {"x", "x/due"},
    joined_tables: {"x", "x/sides"},
    joined_windows: {"x", "x/sides", "x/due"},
    groups: {"x", "x/groups"},
    foreign_keys: {"x"},
    joined_streams: {"x/left", "x/right"},
    looked_up: {"x/rows"},
    looked_back: {"x/waiting", "x/versions", "x/versions/by_end"},
    timers: {"x/seen", "x/timers-by-key", "x/timers-by-time", "x/timers-by-wall"},
    in_order: {"x/waiting"},
    open_matches: {"x/runs", "x/runs/segments", "x/closing"},
}
"""What each program must keep when its cells are moved, so that nothing is moved untested."""


def send(driver: InProcess, numbers: range, topics: str = "tu") -> None:
    """A few keys over and over, so that what comes meets what is kept."""
    for number in numbers:
        for topic in driver._topology.source_topics:
            if topic in topics:
                at = number * 3 - (number % 3) * 5
                driver.send(topic, number % 11, str(number * 7 % 9), timestamp=at)


def results(driver: InProcess) -> tuple[Any, ...]:
    out = driver.read("out") if "out" in driver.broker.topics() else []
    made = Counter((row.raw_key, row.raw_value, row.timestamp_ms) for row in out)
    tables = driver.tables
    kept = {name for name, layout in tables.layouts().items() if layout.history_ms}
    histories = {(name, key): tables[name].history(key) for name in kept for key in range(9)}
    return tables.snapshot(), histories, made, driver.reasons()


@pytest.mark.parametrize("make", KEPT, ids=lambda make: make.__name__)
@pytest.mark.parametrize("after", [3, 1])
def test_cells_that_were_moved_do_what_they_would_have_done(
    make: Make, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_runs, "SIZE", 1)
    monkeypatch.setattr(open_runs, "FEW", 0)
    builder = StreamsBuilder("q")
    make(builder)
    with InProcess(builder) as moved, InProcess(builder) as left_alone:
        for driver in (moved, left_alone):
            send(driver, range(60))
            driver.run(25, more_to_come=True)
        there = alive(moved)
        assert KEPT[make] <= there
        moved._prepared.release()
        reshard(moved._topology, moved.broker, after)
        moved._begin()
        assert alive(moved) == there
        assert results(moved) == results(left_alone)
        for topics, numbers in (("tu", range(60, 66)), ("u", range(66, 70)), ("tu", range(70, 80))):
            for driver in (moved, left_alone):
                send(driver, numbers, topics)
                driver.run(25, more_to_come=True)
            assert results(moved) == results(left_alone)
        for driver in (moved, left_alone):
            driver.wait("2 minutes")
            driver.advance_to(5_000)
        assert results(moved) == results(left_alone)


def alive(driver: InProcess) -> set[str]:
    """The tables that have a cell with a value."""
    fence, state = driver._prepared.ledger.entry.fence, driver._prepared.state
    stores = [state.store(shard) for shard in range(driver._prepared.plan.shards)]
    return {
        table
        for store in stores
        for table in store.tables()
        if not table.endswith("/deleted") and any(cell.before(fence) is not None for _, cell in store.scan(table))
    }


def test_no_kind_of_step_that_keeps_something_is_forgotten() -> None:
    modules = [
        importlib.import_module(f"{nodes.__name__}.{found.name}") for found in pkgutil.iter_modules(nodes.__path__)
    ]
    kinds = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    keepers = {kind for kind in kinds if issubclass(kind, nodes.Node) and "keeps" in vars(kind)} - {nodes.Node}
    assert len(keepers) > 5
    assert {kind for kind in keepers if own_tables.dispatch(kind) is own_tables.dispatch(nodes.Node)} == set()


def test_cells_of_unknown_length_have_a_length_prefix() -> None:
    own: Any = StreamsBuilder("q")
    versions(own)
    topology = own.build()
    (node,) = [node for node in topology if node.name == "x"]
    placed: Any = placements(node, infer(topology))["x/versions"]
    assert placed.homes([b"\x00\x00\x00\x03abc12345678", b"\x00\x00\x00\x0012345678"]) == [b"abc", b""]
