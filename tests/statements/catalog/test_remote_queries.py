"""Queries that another process runs, as they are seen from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from potok.backends.state_url import StoreUnreachable
from potok.runtime.batches.stage import Stage
from potok.server.ksql.descriptions import running_query
from potok.statements.catalog.remote_queries import lagging_queries, queries_are_running
from statements.running import Running

SCRIPT = """
    CREATE STREAM a (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);
    CREATE STREAM b AS SELECT * FROM a;
    CREATE STREAM c AS SELECT * FROM b;
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path) as found:
        found.session.execute(SCRIPT)
        yield found


@pytest.fixture
def other(database: Running, tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path, runs=False) as found:
        yield found


def behind(database: Running, *, include_stopped: bool = True) -> set[str]:
    return lagging_queries(database.broker, database.catalog_state().queries.values(), include_stopped=include_stopped)


def test_those_that_have_records_left_are_behind_and_so_are_those_that_read_them(
    database: Running, other: Running
) -> None:
    assert queries_are_running(other.broker)
    assert behind(other) == set()
    other.do("INSERT INTO a VALUES ('k', 1);")
    assert behind(other) == {"CSAS_B_1"}
    database.started[-1].step()
    assert behind(other) == {"CSAS_C_2"}
    database.run()
    assert behind(other) == set()


def test_a_query_that_has_not_started_is_behind_and_a_paused_one_is_not(database: Running, other: Running) -> None:
    query = other.do("CREATE STREAM d AS SELECT * FROM c;").query_id
    assert (behind(other), behind(other, include_stopped=False)) == ({query}, set())
    database.tend()
    assert behind(other) == set()
    other.do("PAUSE CSAS_B_1;")
    database.tend()
    other.do("INSERT INTO a VALUES ('k', 1);")
    assert behind(other) == set()


def test_a_query_that_does_not_run_is_not_waited_for(database: Running, other: Running) -> None:
    other.do("INSERT INTO a VALUES ('k', 1);")
    database.close()
    assert not queries_are_running(other.broker)
    assert behind(other) == set()


def test_one_that_waits_for_a_server_says_so_in_every_process_and_the_others_run(
    database: Running, other: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.do("CREATE STREAM d AS SELECT * FROM a;")
    database.tend()
    other.do("INSERT INTO a VALUES ('k', 1);")
    finish = Stage.finish

    def away(stage: Any) -> None:
        if stage._spec.query == "CSAS_B_1":
            raise StoreUnreachable("redis://far", "connection refused")
        finish(stage)

    with monkeypatch.context() as patched:
        patched.setattr(Stage, "finish", away)
        database.run()
    for looked_at in (database, other):
        found = {query.query_id: query for query in looked_at.queries()}
        assert [query.state for query in found.values()] == ["WAITING", "RUNNING", "RUNNING"]
        assert "redis://far" in found["CSAS_B_1"].error
        assert running_query(found["CSAS_B_1"])["state"] == "RUNNING", "ksqlDB has no word for it"
    assert behind(other) == {"CSAS_B_1"}
    assert other.broker.end_offsets("D") == {0: 1}
    for statement in ("PAUSE CSAS_B_1;", "RESUME CSAS_B_1;"):
        database.do(statement)
    database.run()
    assert set(database.states().values()) == set(other.states().values()) == {"RUNNING"}
    assert other.broker.end_offsets("B") == {0: 1}
