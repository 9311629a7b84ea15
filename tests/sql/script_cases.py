"""Scripts in data files: what their queries write for some records, or why a statement is refused.

A file has `[sources]`, statements by name, and `[[case]]`s:

- `given`: names of sources that are created before `sql`, whose lines count from 1.
- `inputs`: records, `value` (and `key`) as the text of their bytes; no `value` is a tombstone. A number in the format
  KAFKA is `{int = 7}`, `{bigint = 7}` or `{double = 1.5}`; bytes that are not text are `{hex = "00ff"}`. A header of
  `{null = true}` has no value.
- `outputs`: all records of the topics that are named there, in order. JSON is compared as data.
- `empty`: topics that have no records. `dead`: reasons of dead letters; none if left out.
- `queries`: pull queries on what is there in the end, with their `rows` as JSON.
- `each`: the case is about records that come one after the other, not in one batch.
- `error`, `line`, `column`, `kind`: a refusal.
"""

from __future__ import annotations

import json
import struct
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from potok.testing import SqlDriver

CASES = Path(__file__).parent / "cases"
_KAFKA = {"int": ">i", "bigint": ">q", "double": ">d"}
_BOUNDS = {"SESSION": 16}

NOTHING = {"null": True}

Case = dict[str, Any]


def cases() -> list[tuple[str, Case]]:
    """All cases with the names of their tests; `given` holds statements."""
    found = []
    for file in sorted(CASES.glob("*.toml")):
        reported = tomllib.loads(file.read_text())
        for case in reported["case"]:
            given = "\n".join(reported["sources"][name] for name in case.get("given", []))
            found.append((f"{file.stem}: {case['name']}", {**case, "given": given}))
    return found


def play(driver: SqlDriver, case: Case, *, one_by_one: bool) -> None:
    """Carry out the statements of a case, and feed its records."""
    driver.execute(case["sql"])
    for record in case.get("inputs", []):
        feed(driver, record)
        if one_by_one:
            driver.run(more_to_come=True)
    driver.run()


def feed(driver: SqlDriver, record: dict[str, Any]) -> None:
    headers = {name: None if value == NOTHING else to_bytes(value) for name, value in record.get("headers", {}).items()}
    driver.send(
        record["topic"],
        to_bytes(record.get("value")),
        to_bytes(record.get("key")),
        timestamp=record.get("timestamp", 0),
        partition=record.get("partition"),
        headers=headers or None,
    )


def to_bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, dict):
        ((kind, number),) = value.items()
        return bytes.fromhex(number) if kind == "hex" else struct.pack(_KAFKA[kind], number)
    return str(value).encode()


def written(driver: SqlDriver, topic: str) -> list[dict[str, Any]]:
    """The records of a topic as a case writes them; the bounds of windows apart from the keys."""
    source = next((s for s in driver.database.catalog.sources.values() if s.topic == topic), None)
    bounds = 0 if source is None or source.window is None else _BOUNDS.get(source.window.kind, 8)
    windows = [row.window for row in driver.rows(source.name)] if source is not None and bounds else []
    found = []
    for index, record in enumerate(driver.read(topic)):
        key = record.raw_key
        reported: dict[str, Any] = {
            "key": key[: len(key) - bounds] if key is not None else None,
            "value": record.raw_value,
        }
        reported |= {"timestamp": record.timestamp_ms, "headers": dict(record.headers)}
        found.append(reported | ({"window": list(windows[index] or ())} if bounds else {}))
    return found


def check_outputs(driver: SqlDriver, case: Case, *, one_by_one: bool) -> None:
    """Compare all that was written. In one batch a table reports only the last change of each row."""
    topics = dict.fromkeys(record["topic"] for record in case.get("outputs", []))
    for topic in topics:
        wanted = [record for record in case["outputs"] if record["topic"] == topic]
        there = written(driver, topic)
        if not one_by_one:
            tables = {s.topic for s in driver.database.catalog.sources.values() if s.is_table}
            wanted, there = (_by_key(records, latest=topic in tables) for records in (wanted, there))
        assert [_rendered(record, wish) for record, wish in zip(there, wanted, strict=False)] == [
            _rendered(wish, wish) for wish in wanted
        ]
        assert len(there) == len(wanted), f"{topic} has more: {there[len(wanted) :]}"
    for topic in case.get("empty", []):
        assert written(driver, topic) == []
    assert sorted(letter.reason for letter in driver.dead_letters()) == sorted(case.get("dead", []))


def check_queries(driver: SqlDriver, case: Case) -> None:
    for query in case.get("queries", []):
        rows = [json.loads(json.dumps(row, default=str)) for row in driver.query(query["sql"])]
        wanted = [json.loads(row) for row in query["rows"]]
        assert sorted(rows, key=str) == sorted(wanted, key=str) if query.get("any_order") else rows == wanted


def _by_key(records: Sequence[dict[str, Any]], *, latest: bool) -> list[dict[str, Any]]:
    """Records by their keys, in their order below each; only the last one of each if `latest` is asked for."""
    by_key: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        place = f"{_data(to_bytes(record.get('key')))} {record.get('window')}"
        by_key.setdefault(place, []).append(record)
    return [record for key in sorted(by_key) for record in (by_key[key][-1:] if latest else by_key[key])]


def _rendered(record: dict[str, Any], wish: dict[str, Any]) -> dict[str, Any]:
    """What a wish asks for of a record: key and value always, the rest where it is named."""
    reported: dict[str, Any] = {name: _data(to_bytes(record.get(name))) for name in ("key", "value")}
    for name in ("timestamp", "window"):
        if name in wish:
            reported[name] = record.get(name)
    if "headers" in wish:
        headers = record.get("headers", {}).items()
        reported["headers"] = {name: None if value == NOTHING else to_bytes(value) for name, value in headers}
    return reported


def _data(data: bytes | None) -> Any:
    try:
        return data if data is None else json.loads(data.decode())
    except ValueError:
        return data
