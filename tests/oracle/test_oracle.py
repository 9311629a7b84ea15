"""The oracle is trusted because these answers can be worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from potok import StreamsBuilder, seconds, tumbling
from tests.oracle import Expected, Input, recompute
from tests.oracle.canonical import canonical

ORDER = "user string not null, amount double"


def sent(value: object, key: str | None = "k", at: int = 0) -> Input:
    data = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    return Input(None if key is None else key.encode(), data, at)


def answer(builder: StreamsBuilder, *partitions: list[Input], **others: list[Input]) -> Expected:
    inputs = {"in": dict(enumerate(partitions))} | {topic: {0: records} for topic, records in others.items()}
    return recompute(builder.build(), inputs)


def letters(expected: Expected) -> list[tuple[int, int, str, str]]:
    return [(d.position.partition, d.position.offset, d.step, d.reason) for d in expected.dead_letters]


def written(expected: Expected, topic: str) -> list[tuple[Any, Any]]:
    return [(record.key, record.value) for record in expected.topics[topic].records]


def test_records_pass_through_stateless_steps_in_order() -> None:
    builder = StreamsBuilder("q")
    large = builder.stream("in").filter(lambda v: v > 2).flat_map_values(lambda v: [v, v * 10])
    large.map(lambda k, v: (k + "!", v + 1)).to("out")

    expected = answer(builder, [sent(1), sent(3), sent(5, "b")])

    assert written(expected, "out") == [("k!", 4), ("k!", 31), ("b!", 6), ("b!", 51)]
    assert [record.position.offset for record in expected.topics["out"].records] == [1, 1, 2, 2]
    assert not expected.topics["out"].changelog


def test_what_does_not_fit_the_declared_type_is_a_dead_letter() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in", value=ORDER).map_values(lambda v: v).to("out")
    bad: list[object] = [
        b"\xff",
        b"{",
        {"amount": 1},
        {"user": 5},
        {"user": "a", "amount": "1"},
        {"user": "a", "amount": True},
    ]

    expected = answer(builder, [sent({"user": "a", "amount": 3, "more": 1}), sent({"user": "b"}), *map(sent, bad)])

    assert written(expected, "out") == [("k", {"user": "a", "amount": 3.0}), ("k", {"user": "b", "amount": None})]
    assert letters(expected) == [(0, offset, "in", "decode") for offset in range(2, 8)]


def test_a_value_that_no_step_replaces_is_written_as_it_was_read() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in", value=ORDER).filter(lambda v: True).select_key("user").repartition().to("out")

    expected = answer(builder, [sent({"user": "a", "amount": 3, "more": 1}), sent({"user": "b"})])

    assert written(expected, "out") == [("a", {"user": "a", "amount": 3, "more": 1}), ("b", {"user": "b"})]


def test_an_unused_field_is_not_checked() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in", value=ORDER).group_by("user").count(name="t")
    records = {"in": {0: [sent({"user": "a", "amount": "?"}), sent({"user": 5}), sent(b"[]")]}}

    expected = recompute(builder.build(), records, fields={"in": {"user"}})

    assert expected.tables["t"] == {'"a"': 1}
    assert [letter[1] for letter in letters(expected)] == [1, 2]


def test_a_default_replaces_a_missing_field() -> None:
    from dataclasses import dataclass

    @dataclass
    class Order:
        user: str
        count: int = 7
        note: str | None = "none"

    builder = StreamsBuilder("q")
    builder.stream("in", value=Order).map_values(lambda v: v).to("out")

    expected = answer(builder, [sent({"user": "a"}), sent({"user": "b", "count": 1, "note": None})])

    assert [value for _, value in written(expected, "out")] == [
        {"user": "a", "count": 7, "note": "none"},
        {"user": "b", "count": 1, "note": None},
    ]


def test_a_function_that_raises_sets_the_record_aside_on_that_path_only() -> None:
    builder = StreamsBuilder("q")
    stream = builder.stream("in")
    stream.map_values(lambda v: 6 // v["n"], name="divide").to("out")
    stream.to("all")

    expected = answer(builder, [sent({"n": 0}), sent({"n": 3}), sent(None), sent({})])

    assert written(expected, "out") == [("k", 2)]
    assert len(written(expected, "all")) == 4
    assert letters(expected) == [(0, 0, "divide", "error"), (0, 2, "divide", "error"), (0, 3, "divide", "error")]
    assert expected.dead_letters[0].value == b'{"n": 0}'


def test_a_record_goes_to_the_first_branch_that_takes_it() -> None:
    builder = StreamsBuilder("q")
    arms = builder.stream("in").split(large=lambda v: v > 10, even=lambda v: v % 2 == 0)
    arms["large"].to("large")
    arms["even"].merge(arms["default"]).to("small")

    expected = answer(builder, [sent(12), sent(4), sent(3), sent("text")])

    assert written(expected, "large") == [("k", 12)]
    assert written(expected, "small") == [("k", 4), ("k", 3)]
    assert letters(expected) == [(0, 3, "in.branch", "error")]


def test_a_stream_merged_with_itself_is_there_twice() -> None:
    builder = StreamsBuilder("q")
    stream = builder.stream("in")
    stream.merge(stream).to("out")

    assert written(answer(builder, [sent(1)]), "out") == [("k", 1), ("k", 1)]


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        (lambda group: group.count(name="t"), {"a": 3, "b": 1}),
        (lambda group: group.sum("n", name="t"), {"a": 7, "b": None}),
        (lambda group: group.min("n", name="t"), {"a": 2, "b": None}),
        (lambda group: group.max("n", name="t"), {"a": 5, "b": None}),
        (lambda group: group.avg("n", name="t"), {"a": 3.5, "b": None}),
        (lambda group: group.count_distinct("n", name="t"), {"a": 2, "b": 0}),
        (lambda group: group.collect_list("n", name="t"), {"a": [5, None, 2], "b": [None]}),
        (lambda group: group.latest("n", name="t"), {"a": None, "b": None}),
        (lambda group: group.earliest("n", name="t"), {"a": 2, "b": None}),
        (
            lambda group: group.aggregate(list, lambda v, agg: agg.append(v["n"]) or agg, name="t"),
            {"a": [5, None, 2], "b": [None]},
        ),
        (lambda group: group.aggregate(1, lambda k, v, agg: agg + v["n"], name="t"), {"a": 8}),
        (lambda group: group.reduce(lambda v1, v2: {**v2, "n": 0}, name="t"), {"a": {"n": 0}, "b": {"n": None}}),
    ],
)
def test_each_aggregate(call: Any, rows: dict[str, Any]) -> None:
    builder = StreamsBuilder("q")
    call(builder.stream("in").group_by_key())

    expected = answer(
        builder, [sent({"n": 5}, "a", 10), sent({"n": None}, "a", 20), sent({"n": None}, "b"), sent({"n": 2}, "a", 5)]
    )

    assert expected.tables["t"] == {canonical(key): value for key, value in rows.items()}


def test_the_latest_does_not_depend_on_the_order_of_partitions() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in").group_by_key().latest(name="t")
    early, late = sent("early", at=10), sent("late", at=20)

    assert answer(builder, [early], [late]).tables["t"] == {'"k"': "late"}
    assert answer(builder, [late], [early]).tables["t"] == {'"k"': "late"}


def test_an_aggregate_that_fails_stays_as_it_was() -> None:
    builder = StreamsBuilder("q")
    folded = builder.stream("in").group_by_key()
    folded.aggregate([], lambda k, v, agg: agg.append(v) or agg if 6 // v else agg, name="t")
    folded.aggregate([], lambda k, v, agg: (agg.append(v), 6 // v, agg)[2], name="half_done")

    expected = answer(builder, [sent(0, "a"), sent(1, "b"), sent(0, "b"), sent(2, "b")])

    assert expected.tables == {"t": {'"b"': [1, 2]}, "half_done": {'"b"': [1, 2]}}
    assert [letter[1] for letter in letters(expected)] == [0, 0, 2, 2]


def test_a_record_without_a_key_cannot_be_aggregated() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in").group_by("n").count(name="t")

    expected = answer(builder, [sent({"n": None}), sent({"n": 1}, None)])

    assert expected.tables["t"] == {"1": 1}
    assert letters(expected) == [(0, 0, "t", "no key")]


def window(key: str, start: int, end: int) -> str:
    return canonical({"key": key, "start": start, "end": end})


def test_a_record_is_late_by_the_stream_time_of_its_own_partition() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in").group_by_key().windowed_by(tumbling(seconds(10), grace=seconds(5))).count(name="t")
    first = [sent(1, at=9_999), sent(1, at=14_999), sent(1, at=0), sent(1, at=15_000), sent(1, at=9_999)]
    second = [sent(1, at=1)]

    expected = answer(builder, first, second)

    assert expected.tables["t"] == {window("k", 0, 10_000): 3, window("k", 10_000, 20_000): 2}
    assert letters(expected) == [(0, 4, "t", "late")]


def test_a_bad_record_does_not_advance_stream_time() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in", value=ORDER, timestamp=lambda v: v["amount"]).group_by_key().windowed_by(
        tumbling(seconds(10))
    ).count(name="t")

    expected = answer(
        builder,
        [sent(b"?", at=50_000), sent({"user": "a", "amount": None}, at=50_000), sent({"user": "a", "amount": -1})],
    )

    assert expected.tables["t"] == {window("k", -10_000, 0): 1}
    assert [letter[3] for letter in letters(expected)] == ["decode", "timestamp"]


def test_a_window_is_dropped_when_every_partition_has_passed_its_retention() -> None:
    builder = StreamsBuilder("q")
    table = (
        builder.stream("in").group_by_key().windowed_by(tumbling(seconds(10), retention=seconds(20))).count(name="t")
    )
    table.map_values(lambda v: -v, name="negative").to_stream().to("changes")

    ahead, behind = [sent(1, at=0), sent(1, at=30_000)], [sent(1, at=29_999)]
    assert window("k", 0, 10_000) in answer(builder, ahead, behind).tables["t"]

    expected = answer(builder, ahead, [sent(1, at=30_000)])
    assert expected.tables["t"] == {window("k", 30_000, 40_000): 2}
    assert expected.tables["negative"] == {window("k", 30_000, 40_000): -2}
    assert expected.topics["changes"].changelog
    assert None not in [value for _, value in written(expected, "changes")]


def test_a_partition_without_records_does_not_hold_back_the_watermark() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in").group_by_key().windowed_by(tumbling(seconds(10), retention=0)).count(name="t")

    assert answer(builder, [sent(1, at=0), sent(1, at=10_000)], []).tables["t"] == {window("k", 10_000, 20_000): 1}


def test_a_table_keeps_the_last_value_and_null_deletes() -> None:
    builder = StreamsBuilder("q")
    table = builder.table("in")
    table.filter(lambda v: v > 1, name="many").map_values(lambda v: v * 10, name="tens").to_stream().to("changes")

    expected = answer(
        builder, [sent(5, "a", 9), sent(1, "a", 1), sent(2, "b"), sent(3, "c"), sent(None, "c"), sent(1, None)]
    )

    assert expected.tables == {"in": {'"a"': 1, '"b"': 2}, "many": {'"b"': 2}, "tens": {'"b"': 20}}
    assert written(expected, "changes") == [("a", 50), ("a", None), ("b", 20), ("c", 30), ("c", None)]
    assert letters(expected) == [(0, 5, "in", "no key")]


def test_to_table_orders_by_event_time_after_a_key_change_and_by_position_before() -> None:
    builder = StreamsBuilder("q")
    stream = builder.stream("in")
    stream.to_table(name="by_position")
    stream.select_key(lambda k, v: "one").to_table(name="by_time")

    expected = answer(builder, [sent("newer", at=20), sent(None, at=30), sent("older", at=10)])

    assert expected.tables == {"by_position": {'"k"': "older"}, "by_time": {}}


def test_a_table_can_be_made_of_the_changes_of_a_table() -> None:
    builder = StreamsBuilder("q")
    counts = builder.stream("in").group_by_key().count(name="counts")
    counts.to_stream().to_table(name="copy")
    counts.to_stream().group_by(lambda k, v: "all").max(name="greatest")

    expected = answer(builder, [sent(1, "a", 5), sent(1, "b"), sent(1, "a", 1)])

    assert expected.tables["copy"] == {'"a"': 2, '"b"': 1}
    assert expected.tables["greatest"] == {'"all"': 2}
