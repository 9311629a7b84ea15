"""One aggregate of several streams."""

from __future__ import annotations

from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok import StreamsBuilder, session, tumbling
from potok.errors import TopologyError
from potok.topology.inference.infer import infer


def add(value: Any, total: int) -> int:
    return total + int(value)


def test_streams_become_one_that_knows_where_each_record_is_from() -> None:
    builder = StreamsBuilder("q")
    left, right = builder.stream("left").group_by_key(), builder.stream("right").group_by_key()
    table = left.cogroup(add).cogroup(right, lambda k, v, total: total - v).aggregate(0, name="sums")
    topology = builder.build()
    assert [node.name for node in topology] == [
        "left",
        "right",
        "sums.cogroup.1",
        "sums.cogroup.2",
        "sums.cogroup",
        "sums",
    ]
    assert infer(topology)[table.node].order_dependent


def test_two_cogroups_of_the_same_streams_need_names() -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("in").group_by_key().cogroup(add)
    assert grouped.aggregate(0).name == "in.cogroup.aggregate"
    with pytest.raises(TopologyError, match="needs a name"):
        grouped.aggregate(0)
    assert grouped.aggregate(0, name="other").name == "other"


def test_a_declared_type_and_one_change_for_each_record() -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("in").group_by_key().cogroup(add)
    grouped.aggregate(0, value="bigint", name="t", emit="each_record").to_stream().to("out")
    with InProcess(builder) as driver:
        for value in (1, 2, 3):
            driver.send("in", value, "k", timestamp=value)
        driver.run()
        assert [record.value for record in driver.read("out")] == [1, 3, 6]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda b, g: g.cogroup(b.stream("other"), add), "cogroup got"),
        (lambda b, g: g.cogroup(g, add), "cogroup got"),
        (lambda b, g: g.cogroup(StreamsBuilder("p").stream("o").group_by_key(), add), "two builders"),
        (lambda b, g: g.cogroup(b.stream("other").group_by_key(), lambda v: v), "takes 1 argument"),
        (lambda b, g: g.windowed_by("1 hour"), "windowed_by got"),
        (lambda b, g: g.windowed_by(session("1 h", opens=lambda v: True)), "opened or closed"),
    ],
)
def test_what_cannot_be_cogrouped_is_found_where_it_was_written(call: Any, said: str) -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("in").group_by_key().cogroup(add)
    with pytest.raises(TopologyError, match=said):
        call(builder, grouped)


def test_a_window_may_come_before_the_last_stream() -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("a").group_by_key().cogroup(add).windowedBy(tumbling("1 s"))
    grouped.cogroup(builder.stream("b").group_by_key(), add).aggregate(0, name="t")
    assert infer(builder.build())[builder.build().node("t")].window is not None
