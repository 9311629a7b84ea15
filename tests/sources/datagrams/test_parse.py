"""StatsD lines: what Brubeck accepts becomes a record, and what it does not is malformed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.sources.datagrams.parse import records_of
from potok.sources.datagrams.usual import find_usual


def parsed(*data: bytes, sets: bool = False) -> tuple[list[tuple[str, dict[str, Any]]], list[bytes]]:
    found = records_of(data, sets=sets)
    rows = found.records.to_pylist()
    return [(row["key"].decode(), json.loads(row["value"])) for row in rows], found.malformed


def metric(kind: str, value: float, rate: float = 1, *, relative: bool = False) -> dict[str, Any]:
    return {"type": kind, "value": value, "rate": rate, "relative": relative}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"a.b:1|c", metric("c", 1)),
        (b"a.b:1|c|@0.1", metric("c", 1, 0.1)),
        (b"a.b:1|c|@0.10", metric("c", 1, 0.1)),
        (b"a.b:1|c|@1", metric("c", 1)),
        (b"a.b:70000|C", metric("C", 70_000)),
        (b"a.b:320|ms", metric("ms", 320)),
        (b"a.b:0.25|h", metric("h", 0.25)),
        (b"a.b:333|g", metric("g", 333)),
        (b"a.b:-10|g", metric("g", -10, relative=True)),
        (b"a.b:+4.5|g", metric("g", 4.5, relative=True)),
        (b"a.b:-3|c", metric("c", -3)),
        (b"a.b:.5|ms", metric("ms", 0.5)),
        (b"a.b:5.|ms", metric("ms", 5)),
        (b"a.b:007|ms", metric("ms", 7)),
        (b"a.b:1e3|ms", metric("ms", 1_000)),
        (b"a.b:12|ms\r", metric("ms", 12)),
    ],
)
def test_a_metric_becomes_a_record(line: bytes, expected: dict[str, Any]) -> None:
    assert parsed(line) == ([("a.b", expected)], [])


@pytest.mark.parametrize(
    "line",
    [
        *(b"a", b"a:1", b"a:1|", b"a:1|x", b"a:|c", b":1|c", b"a b:1|c", b"a.:1|c", b"a:one|c", b"a:1|c|", b"a:1|c|@"),
        *(b"a:1|c|@0", b"a:1|c|@2", b"a:1|c|@-1", b"a:1|c|@0.", b"a:1|c|#tag:1", b"a:1:2|c", b"a:1|m", b"a:1|msx"),
        *(b"a:1e400|c", b"a:nan|g", b"a:inf|g", b"a:--1|g", b"a:1.2.3|g", b"\xff:1|c", b"a:x|s", b"a:1|cc", b"a|c:1"),
        b"a:" + b"9" * 400 + b"|c",
    ],
)
def test_any_other_line_is_malformed_and_the_lines_around_it_land(line: bytes) -> None:
    found, malformed = parsed(b"x:1|c\n" + line + b"\ny:2|c")
    assert [name for name, _ in found] == ["x", "y"]
    assert malformed == [line]


def test_a_datagram_has_several_metrics_and_they_keep_their_order_whatever_their_spelling() -> None:
    found, malformed = parsed(b"\na:1|g\na:+.5|g\n\na:-2|g\n", b"", b"a:7.|g\nb:1|c")
    assert [(name, fields["value"]) for name, fields in found] == [("a", 1), ("a", 0.5), ("a", -2), ("a", 7), ("b", 1)]
    assert malformed == []


def test_a_set_is_accepted_if_it_is_asked_for() -> None:
    assert parsed(b'users:b"ob|s', sets=True) == ([("users", {"type": "s", "member": 'b"ob', "rate": 1})], [])
    assert parsed(b"users:bob|s") == ([], [b"users:bob|s"])


numbers = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.floats(-1e6, 1e6).map(repr),
    st.sampled_from(["", "+1", "0.5", "00", ".1"]),
)
lines = st.one_of(
    st.builds(
        lambda *parts: "".join(parts).encode(),
        st.text("ab.é: |", max_size=4),
        st.just(":"),
        numbers,
        st.just("|"),
        st.sampled_from(["c", "g", "C", "h", "ms", "m", "s", ""]),
        st.sampled_from(["", "|@0.1", "|@1", "|@0", "|@0.50", "|@10", "|", "@0.1", "|#a"]),
    ),
    st.binary(max_size=12).filter(lambda line: b"\n" not in line),
)


@given(st.lists(lines, min_size=1, max_size=8))
def test_the_columns_and_the_line_by_line_reading_agree(data: list[bytes]) -> None:
    together = parsed(*data)
    alone = [parsed(each) for each in data]
    assert together[0] == [row for rows, _ in alone for row in rows]
    assert together[1] == [line for _, malformed in alone for line in malformed]
    for each in data:
        # A tab before the end makes a line unusual, and malformed; a trailing CR makes it unusual alone.
        if not each.endswith(b"\r"):
            unusual = parsed(each + b"\r")
            assert find_usual(each + b"\r\n").starts.size == 0
            assert unusual == parsed(each)
