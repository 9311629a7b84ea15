"""Runs a family in one of three ways, in this process or on Spark, and says what each case made of its records."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from potok.testing import TestDriver
from tests.oracle.canonical import canonical, compacted, seen_key, seen_value
from tests.properties.compare import plain, same, table_key
from tests.semantics.case import Case, Sent, row_key
from tests.semantics.combine import combined

MODES = ("one batch", "one batch per record", "a random split")


@dataclass
class Made:
    """What one case made."""

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    topics: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    dead_letters: list[dict[str, Any]] = field(default_factory=list)


def play(family: str, cases: Sequence[Case], mode: str, *, spark: bool = False) -> dict[str, Made]:
    parts = {f"c{index}-": case.topology() for index, case in enumerate(cases)}
    prefixes = dict(zip(parts, cases, strict=True))
    partitions = {prefix + topic: n for prefix, case in prefixes.items() for topic, n in case.partitions.items()}
    with TestDriver(combined(f"cases-{family}", parts), partitions=partitions, spark=spark) as driver:
        for part in _splits(family, prefixes, mode):
            for prefix, sent in part:
                at, headers = (sent.at_ms, sent.partition), {name: text.encode() for name, text in sent.headers.items()}
                driver.send(
                    prefix + sent.topic, sent.value, sent.key, timestamp=at[0], partition=at[1], headers=headers
                )
            driver.run(more_to_come=True)
            if mode == "a random split":
                driver.restart()
        driver.run()
        letters = defaultdict(list)
        for letter in driver.dead_letters():
            prefix, _, step = letter.step.partition("-")
            letters[f"{prefix}-"].append({"step": step, "reason": letter.reason, "offset": letter.offset})
        return {case.name: _made(driver, prefix, case, letters[prefix]) for prefix, case in prefixes.items()}


def _splits(family: str, cases: dict[str, Case], mode: str) -> list[list[tuple[str, Sent]]]:
    """The batches, each with the records that it takes from each case."""
    if mode == "one batch":
        return [[(prefix, sent) for prefix, case in cases.items() for sent in case.records]]
    columns = [[(prefix, sent) for sent in case.records] for prefix, case in cases.items()]
    rounds = [[item for item in row if item is not None] for row in zip_longest(*columns)]
    if mode == "one batch per record":
        return rounds
    cuts, choice = [list[tuple[str, Sent]]()], random.Random(family)
    for row in rounds:
        cuts[-1] += row
        if choice.random() < 0.4:
            cuts.append([])
    return [cut for cut in cuts if cut]


def _made(driver: TestDriver, prefix: str, case: Case, letters: list[dict[str, Any]]) -> Made:
    made = Made(dead_letters=letters)
    for table in case.tables:
        rows = driver.table(prefix + table).all()
        made.tables[table] = {canonical(table_key(key)): plain(value) for key, value in rows.items()}
    for topic in {*case.topics, *case.each}:
        made.topics[topic] = [
            {"key": seen_key(record.raw_key), "value": seen_value(record.raw_value), "at": record.timestamp_ms}
            for record in driver.read(prefix + topic)
        ]
    return made


def differences(case: Case, made: Made, *, each: bool) -> list[str]:
    """What is not as the case says; empty if all is."""
    found: list[str] = []
    for table, rows in case.tables.items():
        expected = {row_key(row): row.get("value") for row in rows}
        found += [f"table {table}: {text}" for text in _rows_differ(made.tables[table], expected)]
    for topic, records in case.topics.items():
        if topic in case.changelog:
            sides = [compacted((r.get("key"), r.get("value")) for r in side) for side in (made.topics[topic], records)]
            found += [f"changelog {topic}: {text}" for text in _rows_differ(*sides)]
        else:
            found += [f"stream {topic}: {text}" for text in _bags_differ(made.topics[topic], records)]
    for topic, records in case.each.items() if each else ():
        rendered = [_as_told(record, reported) for record, reported in zip(made.topics[topic], records, strict=False)]
        if len(made.topics[topic]) != len(records) or not all(map(same, rendered, map(_filled, records))):
            found.append(f"sequence {topic}: {made.topics[topic]}, expected {records}")
    return found + [f"dead letters: {text}" for text in _bags_differ(made.dead_letters, case.dead_letters)]


def _filled(record: dict[str, Any]) -> dict[str, Any]:
    return {"key": None, "value": None} | record


def _as_told(record: dict[str, Any], reported: dict[str, Any]) -> dict[str, Any]:
    """What came, with no more than the case tells of it."""
    return {name: item for name, item in record.items() if name in reported or name in ("key", "value")}


def _rows_differ(actual: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    names = [*expected, *(key for key in actual if key not in expected)]
    return [
        f"{key} is {actual.get(key, 'missing')!r}, expected {expected.get(key, 'no row')!r}"
        for key in names
        if key not in actual or key not in expected or not same(actual[key], plain(expected[key]))
    ]


def _bags_differ(actual: list[dict[str, Any]], expected: list[dict[str, Any]]) -> list[str]:
    reported = (
        set().union({"key", "value"}, *expected) if not expected or "step" not in expected[0] else set(expected[0])
    )
    left = Counter(canonical({name: item for name, item in record.items() if name in reported}) for record in actual)
    right = Counter(canonical(record if "step" in record else _filled(record)) for record in expected)
    found = [f"{n} x {text} is missing" for text, n in (right - left).items()]
    return found + [f"{n} x {text} is too many" for text, n in (left - right).items()]
