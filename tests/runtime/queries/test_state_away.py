"""Members whose state is on a server that stops and comes back. Batches run in this process; the server is real."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cassandra_server import cassandra_server
from potok.runtime.queries.group_query import QueryState
from runtime.queries.by_hand import ByHand, counting, send
from servers import Server, durable_redis, postgres_server

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("place", [durable_redis, postgres_server, cassandra_server])
def test_queries_wait_for_the_server_of_their_state_and_continue(
    tmp_path: Path, place: Callable[[], AbstractContextManager[Server]]
) -> None:
    names = ["one", "two"]
    with place() as server:
        shared = ByHand(tmp_path, state=server.url)
        for name in names:
            shared.add(counting(name))
        send(shared.broker, 10)
        shared.settle()
        server.stop()
        send(shared.broker, 10)
        assert shared.step()
        found = shared.statuses()
        assert {found[name].state for name in names} == {QueryState.WAITING}
        assert all("cannot be reached" in found[name].error for name in names)
        server.start()
        for name in names:
            shared.pause(name)
            shared.resume(name)
        shared.settle()
        assert {found.state for found in shared.statuses().values()} == {QueryState.RUNNING}
        for name in names:
            assert shared.counts(name) == {f"u{n}": 4 for n in range(5)}
        shared.stop()
        shared.broker.close()


@pytest.mark.parametrize("place", [durable_redis, postgres_server])
def test_a_query_that_does_not_need_the_server_continues(
    tmp_path: Path, place: Callable[[], AbstractContextManager[Server]]
) -> None:
    with place() as server:
        first = ByHand(tmp_path, state=server.url)
        first.add(counting("far"))
        first.stop()
        shared = ByHand(tmp_path)
        for name in ("near", "far"):
            shared.add(counting(name))
        server.stop()
        for rounds in (1, 2, 3):
            send(shared.broker, 10)
            if rounds > 1:
                shared.pause("far")
                shared.resume("far")
            shared.settle()
            assert shared.counts("near") == {f"u{n}": 2 * rounds for n in range(5)}
            assert shared.statuses()["far"].state is QueryState.WAITING
        server.start()
        shared.pause("far")
        shared.resume("far")
        shared.settle()
        assert shared.counts("far") == shared.counts("near")
        shared.stop()
        shared.broker.close()
