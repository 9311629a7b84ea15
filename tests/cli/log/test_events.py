"""`potok events check`."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from potok.events.check import MOST_KINDS, MOST_REASONS, TopicCheck
from potok.log.broker import READ_SCHEMA
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord

PROGRAM = """
from dataclasses import dataclass
import potok

@potok.event("checked.created", version=3)
@dataclass
class Created:
    order_id: str

@potok.upcast("checked.created", from_version=2)
def from_2(data):
    return data

builder = potok.StreamsBuilder("shop")
builder.events("orders", types=[Created]).to("out")
"""


def plain(kind: str, version: str) -> bytes:
    return json.dumps({"event_id": "1", "event_type": kind, "event_version": version, "data": {}}).encode()


@pytest.fixture
def topic(potok: Any, tmp_path: Path) -> Path:
    potok("topics", "create", "orders", "--partitions", "2")
    with closing(EmbeddedBroker(tmp_path / "data")) as broker:
        versions = ["1.0", "2.0", "2.1", "3.0", "5.0"]
        broker.append("orders", [LogRecord(b"k", plain("checked.created", version)) for version in versions], 0)
        binary = {"specversion": b"1.0", "id": b"1", "source": b"/s", "type": b"checked.lost"}
        headers = tuple((f"ce_{name}", text) for name, text in binary.items())
        broker.append("orders", [LogRecord(b"k", b"{}", headers=headers), LogRecord(b"k", b"not JSON")], 1)
    (tmp_path / "shop.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.usefixtures("topic")
def test_types_versions_and_gaps_are_listed(potok: Any) -> None:
    result = potok("events", "check", "orders", "--json")
    assert result.code == 1
    assert result.objects[:-1] == [
        {"type": "checked.created", "version": 1, "records": 1, "first": "0@0", "last": "0@0"},
        {"type": "checked.created", "version": 2, "records": 2, "first": "0@1", "last": "0@2"},
        {"type": "checked.created", "version": 3, "records": 1, "first": "0@3", "last": "0@3"},
        {"type": "checked.created", "version": 5, "records": 1, "first": "0@4", "last": "0@4"},
        {"type": "checked.lost", "version": 1, "records": 1, "first": "1@0", "last": "1@0"},
        {"type": "checked.created", "missing_versions": [4]},
    ]
    assert result.objects[-1]["first"] == "1@1" and "not JSON" in result.objects[-1]["not_an_event"]


@pytest.mark.usefixtures("topic")
def test_a_program_says_how_it_reads_each_version(potok: Any) -> None:
    result = potok("events", "check", "orders", "--program", "shop.py", "--json")
    read = {(o["type"], o["version"]): o.get("read") or o["problem"] for o in result.objects if "version" in o}
    assert read == {
        ("checked.created", 1): "no upcast from version 1 to 2",
        ("checked.created", 2): "upcast to 3",
        ("checked.created", 3): "current",
        ("checked.created", 5): "newer than version 3 of the program",
        ("checked.lost", 1): "unknown event type",
    }
    rendered = potok("events", "check", "orders", "--program", "shop.py")
    assert rendered.code == 1
    assert "upcast to 3" in rendered.out and '"checked.created" has no events of version 4' in rendered.err
    assert "7 records checked" in rendered.err


def test_a_topic_of_events_that_the_program_reads_is_fine(potok: Any, topic: Path) -> None:
    potok("topics", "create", "good")
    with closing(EmbeddedBroker(topic / "data")) as broker:
        broker.append("good", [LogRecord(b"k", plain("checked.created", "2.0"))])
    (topic / "good.py").write_text(PROGRAM.replace('"orders"', '"good"'))
    assert potok("events", "check", "good", "--program", "good.py").code == 0
    wrong = potok("events", "check", "orders", "--program", "good.py")
    assert (wrong.code, 'reads no events of topic "orders"' in wrong.err) == (1, True)
    assert "did you mean" in potok("events", "check", "goood").err


AGGREGATE = """
from dataclasses import dataclass
import potok

@potok.event("checked.created", version=5)
@dataclass
class Created:
    order_id: str

@potok.aggregate("carts", events="orders")
class Cart:
    order_id: str = ""

    @potok.applies
    def created(self, event: Created) -> None:
        self.order_id = event.order_id

builder = potok.StreamsBuilder("shop")
builder.aggregate(Cart)
"""


def test_the_events_of_an_aggregate_are_checked_and_a_forgotten_subject_is_accepted(potok: Any, topic: Path) -> None:
    (topic / "carts.py").write_text(AGGREGATE)
    with closing(EmbeddedBroker(topic / "data")) as broker:
        broker.append("orders", [LogRecord(b"k", plain("potok.subject.forgotten", "1.0"))], 0)
    result = potok("events", "check", "orders", "--program", "carts.py", "--json")
    read = {(o["type"], o["version"]): o.get("read") or o["problem"] for o in result.objects if "version" in o}
    assert read["checked.created", 5] == "current"
    assert read["checked.created", 1] == "no upcast from version 1 to 2"
    assert read["potok.subject.forgotten", 1] == "not read"


def test_memory_is_bounded_whatever_the_topic_holds() -> None:
    import pyarrow as pa

    check = TopicCheck()
    count = MOST_KINDS + 5
    values = [plain(f"t{number}", "1") for number in range(count)] + [
        b'{"event_type":"t","event_id":"1","timestamp":"%d"}' % number for number in range(MOST_REASONS + 5)
    ]
    rows = len(values)
    columns = [pa.nulls(rows, field.type) for field in READ_SCHEMA]
    columns[1], columns[5] = pa.array(values, pa.binary()), pa.array(range(rows))
    check.add(pa.RecordBatch.from_arrays(columns, schema=READ_SCHEMA), 0)
    assert len(list(check.kinds(None))) == MOST_KINDS
    assert check.more is not None and check.more.records == 5
    assert len(check.bad) == MOST_REASONS + 1 and check.bad[""].records == 5
    assert check.records == rows
