"""Captures that follow the catalog of `potok serve`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.cdc.changed import Database as Shop
from tests.sources.cdc.changed import equals_select, wait_for

from potok.cli.catalog_captures import CatalogCaptures
from potok.errors import TopologyError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.settings import Settings
from potok.sql.syntax.parse import parse_script
from potok.statements.database import Database
from servers import PostgresServer


def test_captures_start_and_stop_with_their_tables(
    logical_postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(logical_postgres)
    shop.run("CREATE TABLE users (id int PRIMARY KEY, name text)")
    shop.run("INSERT INTO users VALUES (1, 'Ann')")
    broker = EmbeddedBroker(tmp_path)
    create = (
        "CREATE SOURCE TABLE users (id INT PRIMARY KEY, name VARCHAR) "
        f"WITH (CONNECTOR = 'postgres', URL = 'env:SHOP_URL', CAPTURE = '{shop.name}');"
    )
    with Database(broker, Settings(broker=broker.url), runs=False) as database:
        for parsed in parse_script(create):
            database.apply(parsed, {})
        with CatalogCaptures(database) as captures:
            with pytest.raises(TopologyError, match="needs the environment variable SHOP_URL"):
                captures.follow()
            monkeypatch.setenv("SHOP_URL", shop.url)
            captures = CatalogCaptures(database)
            captures.follow()
            captures.follow()
            equals_select(None, broker, shop)
            for parsed in parse_script("DROP TABLE users;"):
                database.apply(parsed, {})
            captures.follow()
            active = "SELECT count(*) FROM pg_replication_slots WHERE active AND database = current_database()"
            wait_for(lambda: shop.run(active) == [(0,)])
    shop.close()
