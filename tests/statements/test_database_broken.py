"""Statements that one process can carry out and another cannot: they hide no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import potok
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.settings import Settings
from potok.sql.errors import SqlError, UnknownName
from potok.sql.functions import registry
from potok.statements.database import Database
from potok.statements.session import SqlSession

SCRIPT = """
    CREATE STREAM a (id VARCHAR KEY, s VARCHAR) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);
    CREATE STREAM b AS SELECT id, ZZ(s) AS m FROM a;
    CREATE STREAM c AS SELECT id, m FROM b;
    CREATE STREAM d AS SELECT * FROM a;
"""
BROKEN = {"CSAS_B_1": "ERROR", "CSAS_C_2": "ERROR", "CSAS_D_3": "STOPPED"}


@pytest.fixture(autouse=True)
def functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of the user's that are forgotten after the test."""
    monkeypatch.setattr(registry, "_users", {})


def define() -> None:
    @potok.function(name="ZZ")
    def doubled(name: str) -> str:
        return name + name


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SqlSession]:
    """A process that does not know the function by which another has defined a stream."""
    define()
    with opened(tmp_path) as first:
        first.execute(SCRIPT)
    registry._users.clear()
    with opened(tmp_path) as second:
        yield second


def opened(directory: Path) -> SqlSession:
    broker = EmbeddedBroker.shared(directory)
    return SqlSession(Database(broker, Settings(broker=f"file:{directory}"), runs=False))


def states(session: SqlSession) -> dict[str, str]:
    return {query.query_id: query.state for query in session.database.queries()}


def test_a_function_that_is_not_known_here_leaves_the_rest_of_the_catalog(session: SqlSession) -> None:
    assert states(session) == BROKEN
    reasons = [query.error for query in session.database.queries()]
    assert reasons[0] == "there is no function ZZ"
    assert "B exists but cannot be loaded: there is no function ZZ" in reasons[1]
    listed = {row["Query ID"]: row["Error"] for row in session.rows("SHOW QUERIES EXTENDED;")}
    assert listed["CSAS_B_1"] == "there is no function ZZ"
    session.execute("EXPLAIN CSAS_B_1; DESCRIBE a EXTENDED; SHOW TOPICS EXTENDED;")
    session.execute("CREATE STREAM e AS SELECT * FROM d;")
    assert sorted(session.database.catalog.sources) == ["A", "D", "E"]
    with pytest.raises(UnknownName, match="B exists but cannot be loaded: there is no function ZZ"):
        session.execute("SELECT * FROM b;")


def test_unreadable_input_is_reported_once_in_one_line(
    session: SqlSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session.database.refresh()
    caplog.clear()
    with opened(tmp_path) as third:
        third.execute("SHOW STREAMS; SHOW QUERIES;")
    reported = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert reported == ["B and C cannot be loaded: there is no function ZZ; --functions FILE loads functions"]


def test_dropped_sources_cause_no_warnings(
    session: SqlSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session.execute("DROP STREAM c; DROP STREAM b;")
    caplog.clear()
    with opened(tmp_path):
        assert [record for record in caplog.records if record.levelname == "WARNING"] == []


def test_statements_that_come_later_are_taken_in_as_well(session: SqlSession, tmp_path: Path) -> None:
    define()
    with opened(tmp_path) as other:
        other.execute("INSERT INTO a SELECT id, ZZ(m) AS s FROM b; CREATE TYPE money AS INT;")
    registry._users.clear()
    session.database.refresh()
    assert states(session) == {**BROKEN, "INSERTQUERY_4": "ERROR"}
    assert "MONEY" in session.database.catalog.types


def test_it_is_there_as_soon_as_the_function_is(session: SqlSession) -> None:
    define()
    session.execute("SHOW STREAMS;")
    assert set(states(session).values()) == {"STOPPED"}
    assert sorted(session.database.catalog.sources) == ["A", "B", "C", "D"]


def test_what_cannot_be_read_can_be_dropped_ended_and_replaced(session: SqlSession) -> None:
    with pytest.raises(SqlError, match="B exists but cannot be loaded"):
        session.execute("CREATE STREAM b AS SELECT * FROM a;")
    with pytest.raises(SqlError, match="the topic of B is unknown in this process"):
        session.execute("DROP STREAM b DELETE TOPIC;")
    session.execute("CREATE STREAM IF NOT EXISTS c AS SELECT * FROM a; DROP STREAM IF EXISTS c;")
    assert states(session) == {"CSAS_B_1": "ERROR", "CSAS_D_3": "STOPPED"}
    (replaced,) = session.execute("CREATE OR REPLACE STREAM b AS SELECT * FROM a;")
    assert replaced.result.query_id == "CSAS_B_1"  # type: ignore[union-attr]
    assert states(session) == {"CSAS_B_1": "STOPPED", "CSAS_D_3": "STOPPED"}
