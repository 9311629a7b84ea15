"""What goes wrong while a query is watched is told to whoever waits for it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from potok.engine.query import Query
from potok.errors import LogError


class SparkQuery:
    """A streaming query that runs until it is stopped."""

    def __init__(self) -> None:
        self.isActive = True
        self.status = {"message": "Waiting for data to arrive"}

    def stop(self) -> None:
        self.isActive = False

    def exception(self) -> None:
        return None


def watched(monkeypatch: pytest.MonkeyPatch, **broken: Any) -> tuple[Query, SparkQuery]:
    """A query, without all that it would run, after it was watched to its end."""
    query = Query.__new__(Query)
    spark = SparkQuery()
    found: Any = query
    found._query, found._error, found._stopping = spark, None, False
    found._lock, found._ended = threading.Lock(), threading.Event()
    methods = {"_finished": lambda: True, "_close": lambda: None, **broken}
    for name, method in methods.items():
        monkeypatch.setattr(query, name, method)
    query._watch()
    return query, spark


def failing() -> bool:
    raise LogError("the home is away", hint="")


@pytest.mark.parametrize("step", ["_finished", "_close"])
def test_an_error_of_the_watch_stops_the_query_and_is_raised_by_wait(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    query, spark = watched(monkeypatch, **{step: failing})
    assert not spark.isActive
    with pytest.raises(LogError, match="the home is away"):
        query.wait()


def test_a_watch_without_errors_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    query, spark = watched(monkeypatch)
    assert query.wait()
    assert not spark.isActive
