from __future__ import annotations

import json
import logging
import stat
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from potok.server.access import audit as audit_module
from potok.server.access.audit import Audit, CannotAudit
from potok.server.access.tokens import Tokens
from potok.server.app import create_app
from statements.playing import Play

SECRETS = {"a-reader-and-no-more", "an-administrator-here", "hunter2-hunter2", "a private value"}
TOKENS = Tokens.load(environ={"POTOK_TOKENS": "read=a-reader-and-no-more admin=an-administrator-here"})
ADMIN = {"Authorization": "Bearer an-administrator-here"}
READER = {"Authorization": "Bearer a-reader-and-no-more"}


class Audited:
    """A server with an audit log in a file."""

    def __init__(self, play: Play, path: Path) -> None:
        self._path = path
        self.client = TestClient(
            create_app(play.database, tokens=TOKENS, audit=Audit(path)), base_url="http://localhost:8088"
        )

    def entries(self) -> list[dict[str, Any]]:
        text = self._path.read_text()
        assert not any(secret in text for secret in SECRETS)
        found = [json.loads(line) for line in text.splitlines()]
        assert all(entry.pop("at") and entry.pop("from") == "testclient" for entry in found)
        return found


@pytest.fixture
def audited(shop: Play, tmp_path: Path) -> Audited:
    return Audited(shop, tmp_path / "audit.jsonl")


def test_every_statement_that_changes_something_is_an_entry(audited: Audited) -> None:
    script = "CREATE STREAM extra (id INT) WITH (KAFKA_TOPIC='extra', PARTITIONS=1); SHOW STREAMS; DROP STREAM extra;"
    audited.client.post("/sql", json={"sql": script}, headers=ADMIN)
    insert = "INSERT INTO orders (id, user_id) VALUES ('o1', 'a private value');"
    audited.client.post("/ksql", json={"ksql": insert}, headers=ADMIN)
    failing = "CREATE SOURCE CONNECTOR c WITH ('kind' = 'nothing', 'password' = 'hunter2-hunter2');"
    audited.client.post("/ksql", json={"ksql": failing}, headers=ADMIN)
    who = {"who": "POTOK_TOKENS 2"}
    assert [{**entry} for entry in audited.entries()] == [
        {**who, "action": "CREATE STREAM", "target": "EXTRA", "outcome": "done"},
        {**who, "action": "DROP STREAM", "target": "EXTRA", "outcome": "done"},
        {**who, "action": "INSERT VALUES", "target": "ORDERS", "outcome": "done"},
        {
            **who,
            "action": "CREATE CONNECTOR",
            "target": "C",
            "outcome": "failed",
            "error": audited.entries()[3]["error"],
        },
    ]


def test_every_route_that_changes_something_is_an_entry(audited: Audited) -> None:
    client = audited.client
    client.post("/topics/orders/records", json={"key": "k", "value": "a private value"}, headers=ADMIN)
    client.post("/inserts-stream", content='{"target":"orders"}\n{"ID":"o2"}\n', headers=ADMIN)
    client.post("/queries/CTAS_TOTALS_1/pause?note=hunter2-hunter2", headers=ADMIN)
    client.post("/topics/nothing/records", json={"value": "x"}, headers=ADMIN)
    found = [(entry["action"], entry["target"], entry["outcome"], entry["status"]) for entry in audited.entries()]
    assert found[0] == ("POST /topics/orders/records", "", "done", 201)
    assert found[1] == ("POST /inserts-stream", "ORDERS", "done", 200)
    assert found[2][:2] == ("POST /queries/CTAS_TOTALS_1/pause", "")
    assert found[3] == ("POST /topics/nothing/records", "", "failed", 404)


def test_denied_attempts_are_entries(audited: Audited) -> None:
    client = audited.client
    client.post("/sql", json={"sql": "DROP TABLE totals;"}, headers=READER)
    client.post("/topics/orders/records", json={"value": "x"})
    client.delete("/queries/x", headers={"Authorization": "Bearer hunter2-hunter2"})
    entries = audited.entries()
    assert entries[0]["target"] == "DROP TABLE TOTALS"
    found = [(entry["who"], entry["action"], entry["outcome"], entry["status"]) for entry in entries]
    assert found == [
        ("POTOK_TOKENS 1", "POST /sql", "denied", 403),
        (None, "POST /topics/orders/records", "denied", 401),
        (None, "DELETE /queries/x", "denied", 401),
    ]


def test_a_flood_of_denied_requests_is_counted(shop: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(audit_module, "MOST_DENIED", 2)
    monkeypatch.setattr(audit_module, "monotonic", lambda: now[0])
    audited = Audited(shop, tmp_path / "audit.jsonl")
    for _ in range(50):
        audited.client.post("/sql")
    now[0] += 60
    audited.client.post("/sql")
    assert [entry.get("unlogged", 0) for entry in audited.entries()] == [0, 0, 48]


def test_reading_is_no_entry(audited: Audited) -> None:
    client = audited.client
    client.get("/tables/totals", headers=READER)
    client.post("/query", json={"ksql": "SELECT * FROM totals;"}, headers=READER)
    client.post("/sql", json={"sql": "SHOW STREAMS;"}, headers=READER)
    assert audited.entries() == []


def test_a_line_break_in_a_name_begins_no_entry(audited: Audited) -> None:
    audited.client.post("/topics/a%0A%7B%22who%22%3A%22x%22%7D/records", json={"value": "x"}, headers=ADMIN)
    assert len(audited.entries()) == 1


def test_the_logger_has_the_entries_too(shop: Play, caplog: pytest.LogCaptureFixture) -> None:
    client = TestClient(create_app(shop.database), base_url="http://localhost:8088")
    with caplog.at_level(logging.INFO, "potok.audit"):
        client.post("/sql", json={"sql": "CREATE TYPE t AS INT;"})
    entry = json.loads(caplog.messages[-1])
    assert (entry["who"], entry["action"], entry["target"]) == ("anybody", "CREATE TYPE", "T")


def test_the_file_is_private_and_follows_a_rotation(shop: Play, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audited = Audited(shop, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    audited.client.post("/sql", json={"sql": "CREATE TYPE t AS INT;"}, headers=ADMIN)
    path.rename(tmp_path / "audit.jsonl.1")
    audited.client.post("/sql", json={"sql": "DROP TYPE t;"}, headers=ADMIN)
    assert [entry["action"] for entry in audited.entries()] == ["DROP TYPE"]


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(CannotAudit):
        Audit(tmp_path / "nowhere" / "audit.jsonl")
