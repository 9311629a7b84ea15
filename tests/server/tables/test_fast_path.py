from __future__ import annotations

import asyncio
from typing import Any

import pytest

from potok.server.access.guard import CALLER
from potok.server.access.tokens import Caller
from potok.server.tables.fast_path import QuickRows, leave_tables_alone
from potok.server.tables.table_reads import TableReads
from server.conftest import sell
from statements.playing import Play

READER, WRITER = Caller("r", frozenset({"read"})), Caller("w", frozenset({"write"}))


class Asked:
    """Requests through the quick way; those that it hands on are noted, and answered with 299."""

    def __init__(self, play: Play) -> None:
        self.handed_on: list[str] = []
        self.reads = TableReads(play.database, 100)
        self.quick = QuickRows(self._longer, self.reads)

    async def _longer(self, scope: Any, receive: Any, send: Any) -> None:
        self.handed_on.append(scope["path"])
        await send({"type": "http.response.start", "status": 299, "headers": []})

    async def ask(
        self, path: str, *, caller: Caller = READER, method: str = "GET", query: bytes = b""
    ) -> tuple[int, bytes]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": [], CALLER: caller}
        await self.quick(scope, None, send)  # type: ignore[arg-type]
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


@pytest.fixture
def asked(shop: Play) -> Asked:
    sell(shop, ("o1", "ann", 2.5))
    return Asked(shop)


def test_a_row_is_answered_before_any_route_is_looked_for(asked: Asked) -> None:
    assert asyncio.run(asked.ask("/tables/totals/ann")) == (200, b'{"USER_ID":"ann","N":1,"TOTAL":2.5}')
    assert asyncio.run(asked.ask("/tables/totals/nobody"))[0] == 404
    assert asked.handed_on == []


@pytest.mark.parametrize(
    ("path", "how"),
    [
        ("/tables/totals/ann", {"method": "HEAD"}),
        ("/tables/totals/ann", {"query": b"at=1"}),
        ("/tables/totals/ann", {"caller": WRITER}),
        ("/tables/totals/changes", {}),
        ("/tables/totals/", {}),
        ("/tables/totals", {}),
        ("/tables/hourly/ann", {}),
        ("/tables/nothing/ann", {}),
        ("/queries", {}),
    ],
)
def test_everything_else_is_handed_on(asked: Asked, path: str, how: dict[str, Any]) -> None:
    assert asyncio.run(asked.ask(path, **how)) == (299, b"")
    assert asked.handed_on == [path]


def test_a_key_of_the_wrong_type_is_refused_as_by_the_route(asked: Asked, shop: Play) -> None:
    shop.do("CREATE TABLE by_n AS SELECT n, COUNT(*) AS users FROM totals GROUP BY n;")
    status, body = asyncio.run(asked.ask("/tables/by_n/seven"))
    assert status == 400
    assert b"is not a BIGINT" in body
    assert asked.handed_on == []


def test_cached_snapshots_are_closed_after_a_while(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.server.tables.fast_path.HELD_S", 0.0)

    async def ask_and_wait() -> list[bool]:
        await asked.ask("/tables/totals/ann")
        cached = asked.reads._cached.values()
        seen = [any(snapshot.is_open for snapshot in cached)]
        while any(snapshot.is_open for snapshot in cached):
            await asyncio.sleep(0)
        assert (await asked.ask("/tables/totals/ann"))[0] == 200
        return seen

    assert asyncio.run(ask_and_wait()) == [True]
    asked.reads.release()


@pytest.mark.parametrize("path", ["/tables/{name}/mine", "/{anything}/x"])
def test_a_page_of_a_program_that_could_be_meant_comes_first(path: str) -> None:
    assert leave_tables_alone(["/stats/{user}/", "/"])
    assert not leave_tables_alone(["/stats/", path])
