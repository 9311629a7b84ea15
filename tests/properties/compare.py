"""What differs between what was made and what the oracle expects, in words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from tests.oracle import DeadLetter, Expected, Output, Position, Written
from tests.oracle.canonical import canonical, compacted, seen_key, seen_value

if TYPE_CHECKING:
    from potok.testing import TestDriver


def differences(actual: Expected, expected: Expected) -> list[str]:
    """Empty if the promise is kept."""
    found: list[str] = []
    for name, rows in expected.tables.items():
        found += _rows_differ(f"table {name}", actual.tables[name], rows)
    for topic, output in expected.topics.items():
        differ = _changelogs_differ if output.changelog else _streams_differ
        found += differ(topic, actual.topics[topic].records, output.records)
    return found + _dead_letters_differ(actual, expected)


def made_by(driver: TestDriver, expected: Expected) -> Expected:
    """What the query made of each thing that is expected, in the same form."""
    tables = {
        name: {canonical(table_key(key)): plain(value) for key, value in driver.table(name).all().items()}
        for name in expected.tables
    }
    topics = {
        topic: Output(output.changelog, [_written(record) for record in driver.read(topic)])
        for topic, output in expected.topics.items()
    }
    letters = [
        DeadLetter(Position(d.topic, d.partition, d.offset), d.step, d.reason, None, d.value, d.error)
        for d in driver.dead_letters()
    ]
    return Expected(tables, topics, letters)


def _written(record: Any) -> Written:
    return Written(seen_key(record.raw_key), seen_value(record.raw_value), _source(record.headers))


def _source(headers: Any) -> Position:
    """Where the record that this one was made of lay, by the header it was sent with."""
    given = dict(headers)
    if "source" not in given:
        return Position("the header is lost", -1, -1)
    topic, partition, offset = bytes(given["source"]).decode().split("/")
    return Position(topic, int(partition), int(offset))


def table_key(key: Any) -> Any:
    """A key as it is in a topic. Views make a named tuple of a window, and pairs of a dict, which cannot be a key."""
    if hasattr(key, "start_ms"):
        return {"key": plain(key.key), "start": key.start_ms, "end": key.end_ms}
    if isinstance(key, tuple) and key and all(isinstance(item, tuple) and len(item) == 2 for item in key):
        return {name: plain(item) for name, item in key}
    return plain(key)


def plain(value: Any) -> Any:
    """Only JSON's own types."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def same(left: Any, right: Any) -> bool:
    """Equal, with the same types, up to the rounding of floats."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def _rows_differ(what: str, actual: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    found = [f"{what}: row {key} is missing, expected {expected[key]!r}" for key in expected if key not in actual]
    found += [f"{what}: row {key} = {actual[key]!r} is not expected" for key in actual if key not in expected]
    found += [
        f"{what}: row {key} is {actual[key]!r}, expected {expected[key]!r}"
        for key in expected
        if key in actual and not same(plain(actual[key]), plain(expected[key]))
    ]
    return found


def _changelogs_differ(topic: str, actual: list[Written], expected: list[Written]) -> list[str]:
    rows = [compacted((plain(record.key), plain(record.value)) for record in side) for side in (actual, expected)]
    return _rows_differ(f"changelog {topic}", *rows)


def _streams_differ(topic: str, actual: list[Written], expected: list[Written]) -> list[str]:
    """The same records, and in the order of their source partition where they have one key."""
    bags = [[canonical((r.position, plain(r.key), plain(r.value))) for r in side] for side in (actual, expected)]
    found = _bags_differ(f"stream {topic}", *bags)
    if not found:
        came, should = _orders(actual), _orders(expected)
        differ = [input_partition for input_partition in should if came[input_partition] != should[input_partition]]
        found = [
            f"stream {topic}: order {came[input_partition]}, expected {should[input_partition]} for {input_partition}"
            for input_partition in differ
        ]
    return found


def _orders(records: list[Written]) -> dict[tuple[str, int, str], list[Any]]:
    """By source partition and key: the offsets, each with all that was made of it, in the order that they came."""
    input_partitions: dict[tuple[str, int, str], list[Any]] = defaultdict(list)
    for record in records:
        if record.key is None:
            continue
        topic, partition, offset = record.position
        input_partition = input_partitions[topic, partition, canonical(plain(record.key))]
        value = canonical(plain(record.value))
        if input_partition and input_partition[-1][0] == offset:
            input_partition[-1][1].append(value)
            input_partition[-1][1].sort()  # a stream merged with its own past has two records at one place, in no order
        else:
            input_partition.append((offset, [value]))
    return input_partitions


def _dead_letters_differ(actual: Expected, expected: Expected) -> list[str]:
    """What a timer made lies nowhere in the log, so it has no bytes to compare."""
    reported = [[(d, d.value if d.position.topic else None) for d in side.dead_letters] for side in (actual, expected)]
    bags = [[(*d.position, d.step, d.reason, value) for d, value in side] for side in reported]
    found = _bags_differ("dead letter", *bags)
    for title, side in (("got", actual), ("expected", expected)) if found else ():
        found += [f"{title}: {tuple(d.position)} at {d.step}: {d.reason} ({d.error})" for d in side.dead_letters]
    return found


def _bags_differ(what: str, actual: list[Any], expected: list[Any]) -> list[str]:
    left, right = Counter(actual), Counter(expected)
    found = [f"{what}: {n} x {record} is missing" for record, n in (right - left).items()]
    return found + [f"{what}: {n} x {record} is too many" for record, n in (left - right).items()]
