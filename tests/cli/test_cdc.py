"""`potok cdc`, against a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from tests.sources.cdc.changed import Database, rows

from cli.conftest import Potok
from potok.log.embedded.embedded_broker import EmbeddedBroker
from servers import PostgresServer


@pytest.fixture
def database(logical_postgres: PostgresServer) -> Iterator[Database]:
    made = Database(logical_postgres)
    made.run("CREATE TABLE users (id int PRIMARY KEY, name text)")
    made.run("INSERT INTO users VALUES (1, 'Ann')")
    yield made
    made.close()


def test_the_rows_of_a_table_land_in_its_topic(database: Database, potok: Potok, tmp_path: Path) -> None:
    found = potok("cdc", database.url, "--table", "users", "--until-snapshot", "--json")
    last = orjson.loads(found.out.splitlines()[-1])
    assert (last["event"], last["state"], last["problem"]) == ("stopped", "stopped", None)
    assert last["snapshots"] == {"public.users": {"rows": 1, "total": 1, "done": True}}
    broker = EmbeddedBroker(tmp_path / "data")
    assert rows(broker, f"{database.name}.public.users") == {b'{"id":1}': {"id": 1, "name": "Ann"}}
    broker.close()


def test_a_database_is_checked_without_starting_anything(database: Database, potok: Potok, tmp_path: Path) -> None:
    found = potok("cdc", database.url, "--table", "users", "--check")
    assert found.err.strip() == f"{database.name}: 1 table, ready to be captured"
    missing = potok("cdc", database.url, "--table", "people", "--check")
    assert 'table "public.people" does not exist' in missing.err
    assert database.run("SELECT count(*) FROM pg_publication") == [(0,)]


def test_a_capture_is_reset_and_dropped(database: Database, potok: Potok) -> None:
    words = ("cdc", database.url, "--table", "users")
    potok(*words, "--until-snapshot")
    database.drop_slots()
    lost = potok(*words, "--until-snapshot")
    assert "does not exist any more" in lost.err and f"--reset {database.name}" in lost.err
    potok(*words, "--reset", database.name)
    assert "stopped" in potok(*words, "--until-snapshot").err
    potok(*words, "--drop", database.name)
    assert database.run("SELECT count(*) FROM pg_publication") == [(0,)]
    assert database.run("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()") == [(0,)]


def test_a_program_names_its_captures(database: Database, potok: Potok, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from potok import StreamsBuilder\n"
        "builder = StreamsBuilder('q')\n"
        f"shop = builder.cdc('{database.url}', tables=['users'])\n"
        "shop.table('users').to_stream().to('out')\n"
    )
    assert "snapshot" not in potok("cdc", "shop.py", "--until-snapshot").err
    (tmp_path / "other.py").write_text(
        "from potok import StreamsBuilder\nbuilder = StreamsBuilder('q')\nbuilder.stream('a').to('b')\n"
    )
    assert "captures no database" in potok("cdc", "other.py").err
