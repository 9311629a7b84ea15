from __future__ import annotations

from typing import Any

import pytest

from potok.server.ksql import statuses
from potok.server.ksql.statuses import Statuses
from potok.statements.catalog.compaction import compact
from statements.playing import Play


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the commands that were parsed."""
    found: list[int] = []
    parse = statuses.parsed_of

    def watched(command: Any) -> Any:
        found.append(command.sequence)
        return parse(command)

    monkeypatch.setattr(statuses, "parsed_of", watched)
    return found


def test_each_statement_is_parsed_once_and_only_what_is_new_is_read(shop: Play, parsed: list[int]) -> None:
    reported = Statuses(shop.database)
    assert reported.all().keys() == {"stream/ORDERS/create", "table/TOTALS/create", "table/HOURLY/create"}
    assert reported.find("table/TOTALS/create") == reported.all()["table/TOTALS/create"]
    assert parsed == [0, 1, 2]
    shop.do("CREATE STREAM big AS SELECT * FROM orders WHERE amount > 3;")
    assert reported.find("stream/BIG/create") is not None
    assert parsed == [0, 1, 2, 3]
    query = next(name for name in shop.database.catalog_state().queries if "BIG" in name)
    shop.do(f"TERMINATE {query};")
    status = reported.find("stream/BIG/create")
    assert status is not None
    assert status["status"] == "TERMINATED"
    assert reported.find("stream/NOBODY/create") is None
    assert len(set(parsed)) == len(parsed)


def test_statements_that_were_removed_are_forgotten(shop: Play, parsed: list[int]) -> None:
    reported = Statuses(shop.database)
    shop.do("CREATE STREAM gone (a INT) WITH (KAFKA_TOPIC = 'gone', PARTITIONS = 1);")
    assert "stream/GONE/create" in reported.all()
    shop.do("DROP STREAM gone;")
    compact(shop.database._commands, shop.broker)
    assert "stream/GONE/create" not in reported.all()
    assert "stream/ORDERS/create" in reported.all()
