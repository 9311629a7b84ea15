from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from potok.statements import database as databases
from potok.statements.queries import runner as runners
from statements.playing import Play
from statements.running import Opener, Running

A = "CREATE STREAM a (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);"
FIVE = "".join(f"INSERT INTO a VALUES ('k{n}', {n});" for n in range(5))


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    found = Play(tmp_path)
    yield found
    found.close()


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    monkeypatch.setattr(databases, "HANDED_OVER_S", 0.0)
    monkeypatch.setattr(runners, "FIRST_RETRY_S", 0.0)
    found: list[Running] = []

    def make(*, runs: bool = True) -> Running:
        found.append(Running(tmp_path, runs=runs))
        return found[-1]

    yield make
    for database in found:
        database.close()


@pytest.fixture
def database(opened: Opener) -> Running:
    """One that runs its queries, with a stream of five records."""
    made = opened()
    made.session.execute(A + FIVE)
    return made


@pytest.fixture
def other(opened: Opener, database: Running) -> Running:
    """Another process, which leaves the queries to the first one."""
    return opened(runs=False)
