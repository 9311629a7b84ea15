"""Make records of StatsD datagrams: lines in the usual spelling as columns, any other line by itself."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.sources.datagrams.usual import Usual, find_usual

_NAME = r"[^\x00-\x20:|\x7f]*[^\x00-\x20:|.\x7f]"
_LINE = re.compile(rf"(?P<name>{_NAME}):(?P<value>[^|]*)\|(?P<type>ms|[gcChs])(?:\|@(?P<rate>[0-9.eE+-]+))?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


class Parsed(NamedTuple):
    """The records of some datagrams, their bytes, and the lines that are not metrics."""

    records: pa.RecordBatch
    size: int
    malformed: list[bytes]


def records_of(data: Sequence[bytes], *, sets: bool) -> Parsed:
    """Return a record for each metric."""
    text = b"\n".join(data) + b"\n"
    usual = find_usual(text)
    name, value = _columns(usual)
    malformed: list[bytes] = []
    if usual.others:
        parsed: list[tuple[int, bytes, bytes]] = []
        for start, end in usual.others:
            line = text[start:end].removesuffix(b"\r")
            found = _one(line, sets=sets)
            if found is not None:
                parsed.append((start, *found))
            elif line:
                malformed.append(line)
        # A relative gauge depends on the one before it, so the lines keep their order.
        order = pa.array(np.argsort(np.append(usual.starts, [each[0] for each in parsed])))
        name = pa.concat_arrays([name, pa.array([each[1] for each in parsed], pa.binary())]).take(order)
        value = pa.concat_arrays([value, pa.array([each[2] for each in parsed], pa.binary())]).take(order)
    records = pa.record_batch([name, value], names=["key", "value"])
    return Parsed(records, records.get_total_buffer_size(), malformed)


def _columns(usual: Usual) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Return the names and the JSON of metrics in the usual spelling: their numbers are copied as they are."""
    minus = pa.array(np.where(usual.signs == ord("-"), b"-", b""), pa.binary())
    relative = pa.array((usual.signs != 0) & usual.are_gauges)
    rate = usual.slices(usual.rate_starts, usual.rate_ends)
    value = pc.binary_join_element_wise(
        b'{"type":"',
        usual.slices(usual.type_starts, usual.type_ends),
        b'","value":',
        minus,
        usual.slices(usual.number_starts, usual.number_ends),
        b',"rate":',
        pc.if_else(pa.array(usual.rate_starts < usual.rate_ends), rate, b"1"),
        pc.if_else(relative, b',"relative":true}', b',"relative":false}'),
        b"",
    )
    return usual.slices(usual.starts, usual.name_ends), value


def _one(line: bytes, *, sets: bool) -> tuple[bytes, bytes] | None:
    """Return the name and the JSON of a metric in any spelling; None if the line is not a metric."""
    try:
        match = _LINE.fullmatch(line.decode())
    except UnicodeDecodeError:
        return None
    if match is None:
        return None
    name, kind, text = match["name"].encode(), match["type"], match["value"]
    rate = _number(match["rate"] or "1")
    if rate is None or not 0 < rate <= 1:
        return None
    if kind == "s":
        fields: dict[str, Any] = {"type": "s", "member": text, "rate": rate}
        return (name, orjson.dumps(fields)) if sets and text else None
    number = _number(text)
    if number is None:
        return None
    fields = {"type": kind, "value": number, "rate": rate, "relative": kind == "g" and text[0] in "+-"}
    return name, orjson.dumps(fields)


def _number(text: str) -> float | None:
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None
