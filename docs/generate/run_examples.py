"""Run the examples of the API reference in the test driver, and return what they print."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import potok
from potok.testing import TestDriver, given

IMPORTS = {
    "asyncio": asyncio,
    "dataclass": dataclass,
    "given": given,
    "json": json,
    "Path": Path,
    "potok": potok,
    "tempfile": tempfile,
    "TestDriver": TestDriver,
    "urllib": urllib,
}
"""What the examples have imported."""

FILE = Path(__file__).parent / "examples.txt"

SETUP = """\
builder = potok.StreamsBuilder("shop")
orders = builder.stream("orders", value="user string, amount double")
payments = builder.stream("payments", value="paid double")
refunds = builder.stream("refunds", value="amount double")
users = builder.table("users", value="name string, city string")
limits = builder.table("limits", value="limit double")
by_user = orders.group_by("user")
by_city = users.group_by("city")
windows = by_user.windowed_by(potok.tumbling("10 seconds"))
"""
"""What the examples start with; each gets the lines whose names it uses."""

RECORDS = (
    ("users", "ann", {"name": "Ann", "city": "Riga"}, 0),
    ("users", "bob", {"name": "Bob", "city": "Oslo"}, 0),
    ("limits", "ann", {"limit": 100.0}, 0),
    ("orders", "o1", {"user": "ann", "amount": 120.0}, 1),
    ("orders", "o2", {"user": "bob", "amount": 20.0}, 2),
    ("payments", "o1", {"paid": 120.0}, 3),
    ("orders", "o3", {"user": "ann", "amount": 80.0}, 12),
    ("refunds", "ann", {"amount": 80.0}, 13),
)
"""Topic, key, value and timestamp in seconds of the records that each example reads."""


def examples() -> dict[str, str]:
    """Return the code of each example by the name of its method."""
    parts = re.split(r"^=== (.+)\n", FILE.read_text(), flags=re.MULTILINE)[1:]
    return {name: code.rstrip() for name, code in zip(parts[::2], parts[1::2], strict=True)}


def output_of(code: str) -> str:
    """Run an example and return what it prints, or the records of the stream or the rows of the table `out`."""
    names: dict[str, Any] = {**IMPORTS, "__name__": "__docs__"}
    setup = "\n".join(_needed(code))
    exec(compile(setup, "<setup>", "exec", dont_inherit=True), names)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "<example>", "exec", dont_inherit=True), names)
    if "out" not in names:
        return printed.getvalue()
    return _run(names["builder"], names["out"])


def _needed(code: str) -> Iterator[str]:
    """Yield the lines of the setup whose names an example uses, directly or through another line."""
    lines = {line.partition(" = ")[0]: line for line in SETUP.splitlines()}
    used = {"builder"}
    text = code
    for name, line in reversed(lines.items()):
        if re.search(rf"\b{name}\b(?! *=[^=])(?!\")", text):
            used.add(name)
            text += f"\n{line.partition(' = ')[2]}"
    return (line for name, line in lines.items() if name in used)


def _run(builder: potok.StreamsBuilder, out: potok.Stream[Any, Any] | potok.Table[Any, Any]) -> str:
    if isinstance(out, potok.Stream):
        out.to("out", partitions=1)
    topics = {source.topic for source in builder.build().sources}
    with TestDriver(builder, shards=1) as driver:
        for topic, key, value, second in RECORDS:
            if topic in topics:
                driver.send(topic, value, key=key, timestamp=second * 1000)
        driver.run()
        if isinstance(out, potok.Table):
            return _rows(driver.table(out.name).items())
        driver.advance_to(60_000)
        return "".join(f"{_plain(record.key)}: {record.value}\n" for record in driver.read("out"))


def _rows(items: Iterable[tuple[Any, Any]]) -> str:
    return "".join(sorted(f"{_plain(key)}: {value}\n" for key, value in items))


def _plain(key: Any) -> str:
    if hasattr(key, "start_ms"):
        return f"{key.key} [{key.start_ms}, {key.end_ms})"
    return str(key)
