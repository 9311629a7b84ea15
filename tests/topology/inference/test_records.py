"""What is known of aggregates in windows that follow the records."""

from __future__ import annotations

from typing import Any

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.topology.compare import functions_of, shape_of
from potok.topology.graph import Topology
from potok.topology.inference.infer import infer
from potok.topology.inference.step import Step
from potok.topology.nodes.windows import session, sliding, tumbling
from potok.topology.pruning import used_fields

SCHEMA = "kind string, n bigint, x double"


def topology(window: Any, verb: str = "count", *given: Any, rekeyed: bool = False) -> Topology:
    builder = StreamsBuilder("q")
    stream = builder.stream("t", value=SCHEMA)
    grouped = stream.group_by("kind") if rekeyed else stream.group_by_key()
    getattr(grouped.windowed_by(window), verb)(*given, name="w")
    return builder.build()


def step_of(found: Topology) -> Step:
    return infer(found)[found.node("w")]


def test_sessions_from_the_last_record_are_native() -> None:
    assert step_of(topology(session("10 s"), "sum", "n")).native


@pytest.mark.parametrize(
    "window",
    [
        sliding("10 s"),
        session(timeout="10 s", from_first=True),
        session("10 s", opens=lambda v: v["n"] > 1),
        session("10 s", closes=lambda v: v["n"] > 1),
    ],
)
def test_other_windows_need_their_records(window: Any) -> None:
    found = step_of(topology(window, "sum", "n"))
    assert not found.native and "recomputed when" in found.reason
    assert found.plan is not None and not found.plan.native and str(found.value) == "int64"


def test_nothing_depends_on_the_order_in_which_records_come() -> None:
    assert step_of(topology(tumbling("10 s"), "collect_list", "n", rekeyed=True)).order_dependent
    for window in (session("10 s"), sliding("10 s")):
        assert not step_of(topology(window, "collect_list", "n", rekeyed=True)).order_dependent


def used(found: Topology) -> set[str] | None:
    return used_fields(found, infer(found))[found.sources[0]]


def test_fields_that_open_a_session_are_read() -> None:
    opened = session("10 s", opens=lambda v: v["kind"] == "login", closes=lambda k, v: v["n"] > 3)
    assert used(topology(opened)) == {"kind", "n"}
    assert used(topology(opened, "sum", "x")) == {"kind", "n", "x"}
    assert used(topology(session("10 s", opens=lambda v: v["kind"] in ("login",)))) is None


def test_a_count_reads_nothing() -> None:
    assert used(topology(session("10 s"))) == used(topology(sliding("10 s"))) == set()


def test_the_functions_that_open_and_close_are_functions_of_the_step() -> None:
    found = topology(session("10 s", opens=lambda v: True, closes=lambda v: False))
    assert len(functions_of(found.node("w"))) == 2


def test_state_of_other_sessions_does_not_fit() -> None:
    shapes = [
        shape_of(found, infer(found))["tables"]["w"]
        for found in map(topology, (session("10 s"), session("20 s"), session("10 s", opens=lambda v: True)))
    ]
    assert len({(shape["window"], shape["cells"]) for shape in shapes}) == 3
