from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from potok.cli.prompt.targets.local import Here
from potok.cli.prompt.targets.target import in_background
from potok.runtime.queries.lock import QueryLock
from potok.settings import Settings
from potok.sql.errors import UnknownName
from potok.sql.syntax.parse import parse_script
from potok.sql.types import BIGINT, VARCHAR
from potok.statements.catalog import remote_queries
from potok.statements.results import Done, Rows

STREAM = "CREATE STREAM orders (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON');"
QUERY = "CREATE STREAM some AS SELECT * FROM orders WHERE n > 1 EMIT CHANGES;"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(broker=f"file:{tmp_path}")


@pytest.fixture
def other(tmp_path: Path) -> Iterator[None]:
    """Another process, this one as it happens, runs the queries of the log."""
    lock = QueryLock(tmp_path / "shared" / "sql", "sql")
    yield
    lock.release()


@pytest.fixture
def here(settings: Settings) -> Iterator[Here]:
    opened = Here.opened(settings)
    yield opened
    opened.close()


def run(here: Here, text: str) -> list[object]:
    return [here.run(parsed) for parsed in parse_script(text, here.variables)]


def test_names_are_those_of_the_catalogue(here: Here) -> None:
    run(here, f"{STREAM} CREATE TYPE money AS DECIMAL(6, 2);")
    names = here.names()
    assert dict(names.sources["ORDERS"].columns)["ID"] == VARCHAR
    assert dict(names.sources["ORDERS"].columns)["ROWTIME"] == BIGINT
    assert (names.sources["ORDERS"].kind, names.topics, names.types) == ("STREAM", ("orders",), ("MONEY",))


def test_without_queries_nothing_is_started(here: Here, settings: Settings) -> None:
    run(here, STREAM)
    here.start()
    here.settle()
    assert here.status() == settings.broker


@pytest.mark.usefixtures("other")
def test_where_another_process_runs_queries_statements_are_written_down_for_it(here: Here) -> None:
    _, created = run(here, STREAM + QUERY)
    assert isinstance(created, Done) and created.query_id
    assert here.names().queries == (created.query_id,)
    assert here.status().endswith("1 query, run by another process")
    (listed,) = run(here, "SHOW QUERIES;")
    assert isinstance(listed, Rows) and len(listed.rows) == 1


@pytest.mark.usefixtures("other")
def test_a_query_that_another_process_does_not_start_is_not_waited_for_for_ever(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []

    def behind(_: object, __: object, *, include_stopped: bool) -> set[str]:
        looks.append(include_stopped)
        monkeypatch.setattr(remote_queries, "LOOK_S", 0.0)
        return {"Q"} if include_stopped else set()

    run(here, STREAM + QUERY)
    monkeypatch.setattr(remote_queries, "START_S", 0.01)
    monkeypatch.setattr(remote_queries, "lagging_queries", behind)
    here.settle()
    assert looks[-1] is False


def test_an_error_in_a_thread_is_raised_where_its_result_is_read() -> None:
    def fail() -> None:
        raise UnknownName("nothing")

    with pytest.raises(UnknownName):
        in_background(fail).result(10)


def test_errors_are_reported_before_spark_starts(here: Here) -> None:
    run(here, STREAM)
    with pytest.raises(UnknownName, match="MM"):
        run(here, "CREATE STREAM some AS SELECT mm FROM orders EMIT CHANGES;")
    assert here._database.shared is None
