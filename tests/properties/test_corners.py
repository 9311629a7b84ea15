"""Corners that random cases come to rarely or leave out, each played record by record and in one batch."""

from __future__ import annotations

import json

import pytest

from tests.oracle import Input
from tests.properties.cases import Case, Run, Send
from tests.properties.play import play
from tests.properties.programs import HEADER

ROW = {"s": "x", "a": 1, "b": 0.5, "n": 2, "tags": ["y"], "t": 0}
Record = tuple[object, str | None, int, int]


def sent(value: object, key: str | None = "k", at: int = 0, partition: int = 0) -> Record:
    return value, key, at, partition


def case_of(program: str, records: list[Record], batch_records: int) -> Case:
    """The program reads the topic `in`, which has two partitions."""
    sends: list[Send] = []
    for value, key, at, partition in records:
        data = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
        offset = sum(send.partition == partition for send in sends)
        sends.append(Send("in", partition, offset, Input(key.encode() if key is not None else None, data, at)))
    return Case(HEADER + program, {"in": 2}, 2, batch_records > 1, [Run(sends, batch_records, restart=False)])


CORNERS: dict[str, tuple[str, list[Record]]] = {
    "an older record does not bring back a row that a newer one deleted": (
        'builder.stream("in").select_key(lambda k, v: k).to_table(name="t")',
        [sent(1, at=10), sent(None, at=30), sent(2, at=20, partition=1)],
    ),
    "the copy of a table is the table, though its records come from two partitions": (
        'counts = builder.stream("in").group_by_key().count(name="counts")\n'
        'counts.to_stream().to_table(name="copy")\n'
        'counts.to_stream().to("changes")',
        [sent(1, at=9, partition=1), sent(1, at=5), sent(1, at=7, partition=1), sent(1, at=0)],
    ),
    "the copy of a table is the table, though a newer value may be of an older time": (
        's = builder.stream("in")\n'
        's.to_table(name="kept").to_stream().to_table(name="copy")\n'
        'totals = s.group_by_key().aggregate(0, lambda k, v, agg: (lambda a: agg + a)(v), name="totals")\n'
        'totals.to_stream().to_table(name="copy_of_totals")',
        [sent(1, "a", at=30), sent(2, "a", at=20), sent(1, "b", at=30), sent(None, "b", at=20)],
    ),
    "the copy of a table of windows is the table": (
        'hourly = builder.stream("in").group_by_key().windowed_by(tumbling(seconds(10))).count(name="t")\n'
        'hourly.filter(lambda v: v > 1, name="many").to_stream().to_table(name="copy")',
        [sent(1, at=5_000), sent(1, at=12_000), sent(1, at=7_000, partition=1), sent(1, at=11_000)],
    ),
    "a typed table keeps its whole rows, though no step looks at them": (
        'builder.table("in", value=Row)',
        [sent(ROW), sent({**ROW, "a": 2})],
    ),
    "the latest value may be null": (
        'grouped = builder.stream("in").group_by_key()\n'
        'grouped.latest(name="all")\ngrouped.latest(lambda v: None, name="t")',
        [sent(1, at=1), sent(None, at=2), sent(1, "b", at=3)],
    ),
    "the empty text is a key": (
        'builder.stream("in", value=Row).group_by("s").count(name="t")',
        [sent({**ROW, "s": ""}), sent({**ROW, "s": "\0"}), sent(ROW, "")],
    ),
    "a tuple is a list, traced or not": (
        's = builder.stream("in", value=Row)\n'
        's.map_values(lambda v: (v["s"], v["a"])).to("traced")\n'
        's.map_values(lambda v: tuple(v[name] for name in ("s", "a"))).to("python")\n'
        's.group_by(lambda v: (v["s"], v["a"])).count(name="counts")',
        [sent(ROW), sent({**ROW, "a": 2}), sent(ROW)],
    ),
    "how keys and values are written depends neither on the records around them nor on tracing": (
        's = builder.stream("in")\n'
        's.map(lambda k, v: (v, v)).to("out", partitions=1)\n'
        't = s.map_values(lambda v: {"s": "t" + str(v)}, value="s string")\n'
        't.map(lambda k, v: (v["s"], v["s"])).to("traced")\n'
        't.map(lambda k, v: (v["s"] or None, v["s"] or None)).to("python")',
        [sent("x"), sent(1), sent("y"), sent({"z": 1}), sent(None), sent("z")],
    ),
    "what is between a source and a sink does not change how a value is written": (
        's = builder.stream("in", value=Row)\n'
        's.to("straight")\n'
        's.repartition().to("moved")\n'
        's.repartition().merge(s).to("merged")',
        [sent({"s": "x", "a": 1, "b": 3, "more": [1]})],
    ),
    "the parts of a stream that come together again are in order": (
        'arms = builder.stream("in").split(odd=lambda v: v % 2)\n'
        'arms["odd"].map_values(lambda v: -v).merge(arms["default"]).to("out")',
        [sent(1), sent(2), sent(3), sent(4)],
    ),
    "the first value of a reduction stands as it is, also null": (
        'builder.stream("in").group_by_key().reduce(lambda v1, v2: v1 + v2, name="t")',
        [sent(None), sent(1), sent(2), sent(1, "b"), sent(2, "b")],
    ),
    "an aggregator that changes its aggregate and then raises has changed nothing": (
        'builder.stream("in").group_by_key().aggregate([], '
        'lambda k, v, agg: (agg.append(v), 6 // v, agg)[2], name="t")',
        [sent(0, "a"), sent(1), sent(0), sent(2)],
    ),
    "the initial value is not shared by keys": (
        'builder.stream("in").group_by_key().aggregate({"seen": []}, '
        'lambda k, v, agg: agg["seen"].append(v) or agg, name="t")',
        [sent(1, "a"), sent(2, "b"), sent(3, "a")],
    ),
    "a stream merged with itself is there twice": (
        's = builder.stream("in", value=Row)\ns.merge(s).to("out")\ns.merge(s).group_by("s").count(name="t")',
        [sent(ROW), sent({**ROW, "s": "y"})],
    ),
    "merged streams of two types keep the fields that each has": (
        's = builder.stream("in", value=Row)\ns.merge(s.map_values(lambda v: {"a": v["a"] * 1.5})).to("out")',
        [sent(ROW), sent({**ROW, "a": 3})],
    ),
    "one record at a time is decoded": (
        's = builder.stream("in", value=Row)\ns.to("out")',
        [
            sent(b'{"s":"x","a":1}{"s":"y","a":2}'),
            sent(b'{"s":"x","a":1}\n{"s":"y","a":2}'),
            sent(b'{"s":"z",\n"a":3}'),
            sent(b""),
            sent(b"{}"),
            sent(b'{"s":"w","a":4} '),
            sent(b'{"s":"\\ud83d","a":5}'),
            sent(b'{"s":"q","a":6,"tags":[null,"z"]}'),
            sent(b'{"s":"r","a":9223372036854775807}'),
            sent(b'{"s":"r","a":9223372036854775808}'),
        ],
    ),
    "the null of JSON is a null value": (
        's = builder.stream("in", value=Row)\ns.to("out")\ns.map_values(lambda v: v["a"]).to("numbers")',
        [sent(b"null"), sent(b" null "), sent(None), sent(ROW)],
    ),
    "keys of different types are different keys": (
        'builder.stream("in").group_by(lambda v: v["id"]).count(name="t")',
        [sent({"id": n}) for n in (1, "1", "true", 0.5, 1, 0, "", "null")],
    ),
    "a sum of whole numbers is exact": (
        'builder.stream("in", value=Row).group_by("s").sum("a", name="t")',
        [sent({**ROW, "a": 2**62}), sent({**ROW, "a": 2**62}, partition=1), sent({**ROW, "a": -1})],
    ),
    "windows before 1970 are windows": (
        'builder.stream("in", timestamp="t").group_by_key().windowed_by(tumbling(seconds(10))).count(name="t")',
        [sent({"t": -1}), sent({"t": -10_000}), sent({"t": -10_001}), sent({"t": 0}), sent({"t": -1})],
    ),
    "a late record is late whatever else is wrong with it": (
        'builder.stream("in").group_by_key().windowed_by(tumbling(seconds(10))).sum(lambda v: v["a"], name="t")',
        [sent({"a": 1}, at=50_000), sent({}, at=0), sent({"a": 1}, None, at=0), sent({"a": 2}, at=50_000)],
    ),
    "a window that every partition has passed is gone, and so is its row downstream": (
        'grouped = builder.stream("in").group_by_key()\n'
        't = grouped.windowed_by(tumbling(seconds(10), retention=seconds(10))).count(name="t")\n'
        't.map_values(lambda v: v * 2, name="twice").to_stream().to("changes")',
        [sent(1, at=0), sent(1, at=25_000), sent(1, at=5_000, partition=1), sent(1, at=21_000, partition=1)],
    ),
}


@pytest.mark.spark
@pytest.mark.parametrize("batch_records", [1, 1_000])
@pytest.mark.parametrize("corner", CORNERS)
def test_a_corner(corner: str, batch_records: int) -> None:
    case = case_of(*CORNERS[corner], batch_records)

    found = play(case)

    assert not found, "\n".join([*found, case.script()])


@pytest.mark.spark
def test_an_aggregate_of_an_aggregate_sees_every_change_when_each_record_is_a_batch() -> None:
    program = (
        'counts = builder.stream("in").group_by_key().count(name="counts")\n'
        "by_count = counts.to_stream().group_by(lambda k, v: k[:1])\n"
        'by_count.count(name="changes")\n'
        'by_count.sum(name="total")'
    )
    case = case_of(program, [sent(1, "a1"), sent(1, "a2"), sent(1, "a1"), sent(1, "b1"), sent(1, "a1")], 1)

    found = play(case)

    assert not found, "\n".join([*found, case.script()])
