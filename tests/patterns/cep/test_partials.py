"""Partial matches as a table."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

import potok
from potok.operators.patterns import open_runs
from potok.patterns import cep
from potok.server.server import Server
from potok.settings import Settings
from potok.snapshots.progress import read_progress
from potok.snapshots.tables import Tables
from potok.statements.queries.query_tables import QueryTables
from potok.testing import TestDriver

SMALL = cep.event("small", lambda e: e["amount"] < 10)
BIG = cep.event("big", lambda e: e["amount"] > 100)
FRAUD = SMALL.times_or_more(2).until(lambda e: e["amount"] == 50).followed_by(BIG).within("10 s")


def program() -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("bank")
    payments = builder.stream("payments", value="amount bigint").group_by_key()
    payments.match(FRAUD, after="skip_past_last", name="fraud").to("alerts")
    return builder


def pay(driver: TestDriver, key: str, *amounts: int, at: int) -> None:
    for number, amount in enumerate(amounts):
        driver.send("payments", {"amount": amount}, key=key, timestamp=at + number)
    driver.run(more_to_come=True)


def open_keys(driver: TestDriver) -> int:
    """How many keys have open matches, as the progress of the query says."""
    progress = read_progress(driver.broker, "bank")
    assert progress is not None
    return progress.state_keys["fraud.partials"]


def one(began_at: int, *small: int) -> dict[str, object]:
    return {"began_at": began_at, "ways": 1, "taken": {"small": [{"amount": n} for n in small], "big": []}}


def test_what_has_matched_so_far_is_a_row_until_the_match_is_complete_or_over() -> None:
    with TestDriver(program(), shards=2) as driver:
        partials = driver.table("fraud.partials")
        pay(driver, "ann", 1, 20, at=1_000)
        pay(driver, "bob", 3, at=1_010)
        pay(driver, "end", 20, at=1_020)
        assert partials.all() == {"ann": [one(1_000, 1)], "bob": [one(1_010, 3)]}
        assert open_keys(driver) == 2
        pay(driver, "ann", 2, 200, at=1_030)
        pay(driver, "end", 20, at=1_040)
        assert partials.get("ann") is None and partials.get("bob") == [one(1_010, 3)]
        assert len(driver.read("alerts")) == 1
        pay(driver, "end", 20, at=20_000)
        pay(driver, "end", 20, at=30_000)
        assert partials.all() == {}
        assert open_keys(driver) == 0


def test_partial_matches_survive_a_restart_and_are_read_as_columns() -> None:
    with TestDriver(program()) as driver:
        pay(driver, "ann", 1, 2, at=1_000)
        pay(driver, "end", 20, at=1_020)
        driver.restart()
        row, second = driver.table("fraud.partials").get("ann")
        assert (row["began_at"], second["began_at"]) == (1_000, 1_001)
        assert row["taken"]["small"] == [{"amount": 1}, {"amount": 2}]
        assert driver.table("fraud.partials").to_arrow()["key"].to_pylist() == ["ann"]


def test_partial_matches_are_served(tmp_path: Path) -> None:
    with TestDriver(program(), directory=tmp_path) as driver:
        pay(driver, "ann", 1, at=1_000)
        pay(driver, "end", 20, at=1_020)
        with (
            QueryTables(driver.broker, Settings(), ["bank"]) as database,
            Server(database, port=0) as server,
            httpx.Client(base_url=server.url, timeout=30) as client,
        ):
            found = client.get("/tables/fraud.partials/ann")
            assert found.status_code == 200 and '"began_at":1000' in found.text.replace(" ", "").replace("\\", "")
            assert client.get("/tables/fraud.partials/bob").status_code == 404


def test_open_matches_in_segments_are_shown_and_leave_nothing_when_their_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_runs, "SIZE", 2)
    with TestDriver(program(), shards=2) as driver:
        for number in range(20):
            pay(driver, "ann", number % 10, at=1_000 + number)
            pay(driver, "end", 20, at=1_001 + number)
        assert cells_of(driver, "fraud/runs/segments")
        partials = driver.table("fraud.partials")
        expected = [
            one(1_000 + start, *(number % 10 for number in range(start, 20))) | {"ways": 1 if start == 19 else 2}
            for start in range(20)
        ]
        assert partials.get("ann") == expected
        assert partials.all() == partials.prefix("a") == {"ann": expected}
        assert len(partials.to_arrow()["value"][0].as_py()) > 500
        driver.restart()
        assert driver.table("fraud.partials").get("ann") == expected
        pay(driver, "end", 20, at=11_010)
        assert [row["began_at"] for row in driver.table("fraud.partials").get("ann")] == list(range(1_011, 1_020))
        pay(driver, "end", 20, at=20_000)
        pay(driver, "end", 20, at=30_000)
        assert driver.table("fraud.partials").all() == {}
        assert not cells_of(driver, "fraud/runs") and not cells_of(driver, "fraud/runs/segments")


def cells_of(driver: TestDriver, table: str) -> list[bytes]:
    """The keys of cells with a value."""
    return Tables(driver.broker, "bank").read(lambda snapshot: [key for key, _ in snapshot.scan(table)])
