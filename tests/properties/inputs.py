"""Random records: most of them good, the others bad in every way that a topic knows."""

from __future__ import annotations

import json
import zlib
from typing import Any

from hypothesis import strategies as st

from tests.oracle import Input
from tests.properties.programs import Program, Topic

TIMES = [
    0,
    1,
    2_499,
    2_500,
    4_999,
    7_000,
    9_999,
    10_000,
    12_000,
    14_999,
    15_000,
    19_999,
    20_000,
    26_000,
    33_000,
    60_000,
]
KEYS: dict[str, list[bytes | None]] = {
    "str": [b"k1", b"k2", b"k3", "ключ".encode(), None],
    "int": [b"1", b"2", b"-30", None],
}
BAD_KEYS = {"str": b"\xff", "int": b"one"}
TEXTS = ["x", "y", "é", "ключ", "😀", ""]
BAD_VALUES = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[1, 2]",
    b'"text"',
    b"nul",
    b"5",
    b'{"a": NaN}',
    b'{"s": "x", "a": 1} {"s": "y", "a": 2}',
    b" ",
]
WRONG: dict[str, list[Any]] = {
    "s": [5, None],
    "a": ["oops", True, None, {"x": 1}, [1]],
    "b": ["1.5", None, [0.5]],
    "n": ["7", None],
    "tags": [None, "abc", [1, "z"], {"z": 1}],
    "t": ["soon", None, "1970-01-01T00:00:12Z", {"at": 1}],
}

_good = st.fixed_dictionaries(
    {
        "s": st.sampled_from(TEXTS),
        "a": st.integers(-3, 9),
        "b": st.sampled_from([0.0, 0.25, -1.5, 2.0, 1e3, 3]),
        "n": st.integers(-2, 8),
        "tags": st.lists(st.sampled_from(["x", "y", "z"]), max_size=3),
        "t": st.sampled_from([-4_000, *TIMES]),
    }
)


def _text(value: dict[str, Any], style: int) -> bytes:
    if style == 0:
        return json.dumps(value).encode()
    if style == 1:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return b" " + json.dumps({"extra": {"deep": [1]}, **value}, indent=1).encode() + b"\n"


@st.composite
def _values(draw: st.DrawFn) -> bytes | None:
    kind = draw(st.sampled_from(["good"] * 7 + ["missing", "wrong", "null", "bad"]))
    if kind == "null":
        return None
    if kind == "bad":
        return draw(st.sampled_from(BAD_VALUES))
    value = draw(_good)
    if kind != "good":
        name = draw(st.sampled_from(list(WRONG)))
        if kind == "missing":
            del value[name]
        else:
            value[name] = draw(st.sampled_from(WRONG[name]))
    return _text(value, draw(st.sampled_from([0, 0, 1, 2])))


@st.composite
def _records(draw: st.DrawFn, topic: Topic) -> Input:
    timestamp_ms = draw(st.sampled_from(TIMES))
    key = draw(st.sampled_from(KEYS[topic.key_type] * 4 + [BAD_KEYS[topic.key_type]]))
    return Input(key, draw(_values()), timestamp_ms)


@st.composite
def _firsts(draw: st.DrawFn, topic: Topic, partition: int) -> Input:
    """A good record, with a key that belongs to the partition."""
    keys = ((b"%d" if topic.key_type == "int" else b"first%d") % n for n in range(100, 200))
    key = next(key for key in keys if _partition_of(key, topic) == partition)
    return Input(key, _text(draw(_good), 0), draw(st.sampled_from(TIMES)))


def _partition_of(key: bytes | None, topic: Topic) -> int:
    return zlib.crc32(key or b"") % topic.partitions


@st.composite
def inputs(draw: st.DrawFn, program: Program) -> dict[str, dict[int, list[Input]]]:
    """Records for each topic and partition.

    A partition that begins to speak after the windows of the others have closed is outside the promise (the clock does
    not wait for it at the end of a run), so with windows every partition that is used begins with a good record.
    """
    filled: dict[str, dict[int, list[Input]]] = {}
    for topic in program.topics.values():
        partitions: dict[int, list[Input]] = {p: [] for p in range(topic.partitions)}
        if program.windowed:
            for partition, started in partitions.items():
                started.append(draw(_firsts(topic, partition)))
        size = draw(st.sampled_from([3, 9, 15]))
        for record in draw(st.lists(_records(topic), min_size=size, max_size=size + 4)):
            partition = _partition_of(record.key, topic) if topic.by_key else draw(st.integers(0, topic.partitions - 1))
            partitions[partition].append(record)
        filled[topic.name] = partitions
    return filled
