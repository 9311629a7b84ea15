"""Which queries run: those that should; and what becomes of those that cannot begin, or fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from potok.errors import QueryError
from potok.runtime.queries.errors import NotRunning
from potok.statements.catalog.catalog_state import Wanted
from potok.statements.queries import runner as runners
from potok.statements.queries.runner import Runner
from potok.topology.graph import Topology


class Refuses(QueryError):
    pass


class State:
    def __init__(self, value: str) -> None:
        self.value = value


class Status:
    def __init__(self, value: str) -> None:
        self.state, self.error = State(value), "broken" if value == "FAILED" else ""


class Members:
    """The members of a shared query, and which names it refuses."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.began: list[tuple[str, str]] = []
        self.refused: set[str] = set()
        self.tried = 0

    def add(self, topology: Topology, *, start: str, paused: bool) -> None:
        if topology.name in self.refused:
            raise Refuses(f"{topology.name} does not fit")
        self.began.append((topology.name, start))
        self.states[topology.name] = "PAUSED" if paused else "RUNNING"

    def remove(self, name: str) -> None:
        del self.states[name]

    def pause(self, name: str) -> None:
        self._turn(name, "PAUSED")

    def resume(self, name: str) -> None:
        self._turn(name, "RUNNING")

    def _turn(self, name: str, state: str) -> None:
        if self.states[name] == "FAILED":
            raise NotRunning(name, "broken")
        self.states[name] = state

    def retry(self, name: str) -> None:
        self.tried += 1
        self.states[name] = "RUNNING"

    def statuses(self) -> dict[str, Any]:
        return {name: Status(state) for name, state in self.states.items()}


def wanted(name: str, text: str = "", **changes: Any) -> Wanted:
    return replace(Wanted(name, text or name, "CTAS", name, Topology(name, ())), **changes)


@pytest.fixture
def members() -> Members:
    return Members()


@pytest.fixture
def runner(members: Members) -> Runner:
    return Runner(members)  # type: ignore[arg-type]


def test_queries_follow_what_is_wanted(runner: Runner, members: Members) -> None:
    runner.settle({"a": wanted("a"), "b": wanted("b", start="latest", paused=True)})
    assert members.states == {"a": "RUNNING", "b": "PAUSED"}
    assert members.began == [("a", "earliest"), ("b", "latest")]
    runner.settle({"b": wanted("b", start="latest")})
    assert members.states == {"b": "RUNNING"}
    runner.settle({"b": wanted("b", sequence=7)})
    assert members.began[-1] == ("b", "earliest")


def test_one_that_is_defined_again_with_the_same_text_starts_again(runner: Runner, members: Members) -> None:
    runner.settle({"a": wanted("a", sequence=3)})
    runner.settle({"a": wanted("a", sequence=3)})
    assert len(members.began) == 1
    runner.settle({"a": wanted("a", sequence=5)})
    assert len(members.began) == 2


def test_one_that_failed_can_be_paused_and_is_tried_again_when_it_is_resumed(
    runner: Runner, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "FIRST_RETRY_S", 0.0)
    runner.settle({"a": wanted("a"), "b": wanted("b")})
    members.states["a"] = "FAILED"
    paused = wanted("a", paused=True)
    runner.settle({"a": paused, "b": wanted("b"), "c": wanted("c")})
    runner.look_after()
    assert (members.states, members.tried) == ({"a": "FAILED", "b": "RUNNING", "c": "RUNNING"}, 0)
    assert runner.state_of(paused, members.statuses()) == ("PAUSED", "broken")
    runner.settle({"a": wanted("a"), "b": wanted("b")})
    assert (members.states, members.tried) == ({"a": "RUNNING", "b": "RUNNING"}, 1)


def test_a_query_that_cannot_start_can_be_paused(
    runner: Runner, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "FIRST_RETRY_S", 0.0)
    members.refused.add("a")
    runner.settle({"a": wanted("a")})
    runner.settle({"a": wanted("a", paused=True)})
    members.refused.clear()
    runner.look_after()
    assert members.states == {}
    runner.settle({"a": wanted("a")})
    assert members.states == {"a": "RUNNING"}


def test_one_that_cannot_be_ended_in_order_is_ended_all_the_same(
    runner: Runner, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner.settle({"a": wanted("a")})
    remove = members.remove

    def badly(name: str) -> None:
        remove(name)
        raise Refuses("the log is full")

    monkeypatch.setattr(members, "remove", badly)
    runner.settle({"b": wanted("b")})
    assert members.states == {"b": "RUNNING"}


def test_a_query_whose_statement_cannot_be_parsed_is_reported_and_starts_once_it_can(
    runner: Runner, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "FIRST_RETRY_S", 0.0)
    broken = wanted("a", broken="there is no function ZZ")
    runner.settle({"a": broken})
    runner.look_after()
    assert members.states == {}
    assert runner.state_of(broken, {}) == ("ERROR", "there is no function ZZ")
    runner.settle({"a": wanted("a")})
    assert members.states == {"a": "RUNNING"}


def test_a_query_that_cannot_start_is_reported_and_retried(
    runner: Runner, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "FIRST_RETRY_S", 0.0)
    members.refused.add("a")
    queries = {"a": wanted("a"), "b": wanted("b")}
    runner.settle(queries)
    assert members.states == {"b": "RUNNING"}
    assert runner.state_of(queries["a"], members.statuses()) == ("ERROR", "a does not fit")
    members.refused.clear()
    runner.look_after()
    assert members.states == {"a": "RUNNING", "b": "RUNNING"}
    assert runner.state_of(queries["a"], members.statuses()) == ("RUNNING", "")


def test_one_that_failed_is_tried_again_after_a_while(
    runner: Runner, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(runners.time, "monotonic", lambda: now)
    runner.settle({"a": wanted("a")})
    for pause in (1.0, 2.0, 4.0):
        members.states["a"] = "FAILED"
        before = members.tried
        runner.look_after()
        assert (members.tried, runner.state_of(wanted("a"), members.statuses())) == (before, ("ERROR", "broken"))
        now += pause
        runner.look_after()
        assert members.tried == before + 1
