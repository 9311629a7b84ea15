"""The command log without what is over makes the same catalog as the whole one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.settings import Settings
from potok.sql.errors import SqlError
from potok.sql.syntax.parse import parse_script
from potok.statements.catalog.catalog_state import EMPTY, CatalogState, parsed_of
from potok.statements.catalog.command_log import Command, CommandLog
from potok.statements.catalog.compaction import compact, living
from potok.statements.database import MANY, Database
from potok.topology.compare import shape_of
from potok.topology.inference.infer import infer

A = "CREATE STREAM a (id VARCHAR KEY, x INT) WITH (KAFKA_TOPIC = 'a', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"


def opened(directory: Path) -> Database:
    return Database(EmbeddedBroker.shared(directory), Settings(broker=f"file:{directory}"), runs=False)


def apply(database: Database, text: str) -> None:
    for parsed in parse_script(text):
        database.apply(parsed, {})


def left(directory: Path) -> list[str]:
    """The texts that are left after the log was compacted."""
    broker = EmbeddedBroker.shared(directory)
    compact(CommandLog(broker), broker)
    return [command.text for command in CommandLog(broker).all()]


def as_data(catalog_state: CatalogState) -> tuple[Any, ...]:
    """Books that can be compared: in their order, with topologies as shapes."""
    queries = [
        (q.query_id, q.text, q.kind, q.source, q.start, q.paused, q.sequence, q.broken)
        + (shape_of(q.topology, infer(q.topology)),)
        for q in catalog_state.queries.values()
    ]
    catalog = catalog_state.catalog
    return list(catalog.sources.items()), list(catalog.types.items()), dict(catalog.missing), queries


def replayed(commands: list[Command], broker: EmbeddedBroker) -> CatalogState:
    catalog_state = EMPTY
    for command in commands:
        catalog_state = catalog_state.after(parsed_of(command), command, broker)
    return catalog_state


def test_what_was_created_and_dropped_is_gone_and_ids_stay(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        apply(database, A + "CREATE STREAM b AS SELECT id, x FROM a; DROP STREAM b;")
        apply(database, "CREATE STREAM b AS SELECT id, x + 1 AS y FROM a;")
        before = as_data(database.catalog_state())
        assert left(tmp_path) == [A, "CREATE STREAM b AS SELECT id, x + 1 AS y FROM a;"]
        assert [command.sequence for command in CommandLog(database.broker).all()] == [0, 3]
    with opened(tmp_path) as again:
        assert as_data(again.catalog_state()) == before
        apply(again, "CREATE STREAM c AS SELECT id, x FROM a;")
        assert list(again.catalog_state().queries) == ["CSAS_B_3", "CSAS_C_4"]


def test_of_replaced_versions_the_last_is_kept_unless_another_was_read(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        apply(database, A + "CREATE STREAM b AS SELECT id, x AS c0 FROM a;")
        apply(database, "CREATE STREAM reader AS SELECT * FROM b;")
        for number in range(1, 6):
            rendered = ", ".join(f"x + {n} AS c{n}" for n in range(1, number + 1))
            apply(database, f"CREATE OR REPLACE STREAM b AS SELECT id, x AS c0, {rendered} FROM a;")
        before = as_data(database.catalog_state())
        texts = left(tmp_path)
        assert len(texts) == 4
        assert texts[1:3] == [
            "CREATE STREAM b AS SELECT id, x AS c0 FROM a;",
            "CREATE STREAM reader AS SELECT * FROM b;",
        ]
    with opened(tmp_path) as again:
        assert as_data(again.catalog_state()) == before
        assert [column.name for column in again.catalog.source("READER").columns] == ["ID", "C0"]


def test_the_last_command_decides_whether_a_query_is_paused(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        apply(database, A + "CREATE STREAM b AS SELECT id, x FROM a; CREATE STREAM c AS SELECT id, x FROM a;")
        apply(database, "PAUSE CSAS_B_1; RESUME CSAS_B_1; PAUSE ALL; RESUME CSAS_C_2; PAUSE CSAS_C_2; RESUME CSAS_C_2;")
        assert left(tmp_path)[3:] == ["PAUSE ALL;", "RESUME CSAS_C_2;"]
    with opened(tmp_path) as again:
        assert {q.query_id: q.paused for q in again.catalog_state().queries.values()} == {
            "CSAS_B_1": True,
            "CSAS_C_2": False,
        }


def test_what_a_living_table_was_made_of_stays_though_it_was_dropped(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        apply(database, "CREATE TYPE money AS DECIMAL(8, 2);")
        apply(database, A + "CREATE STREAM b AS SELECT id, CAST(x AS money) AS m FROM a;")
        apply(database, "TERMINATE CSAS_B_2; DROP STREAM a; DROP TYPE money;")
        before = as_data(database.catalog_state())
        assert len(left(tmp_path)) == 6
    with opened(tmp_path) as again:
        assert as_data(again.catalog_state()) == before


def test_a_follower_overtaken_by_compaction_of_the_command_log_starts_again(tmp_path: Path) -> None:
    with opened(tmp_path) as writer, opened(tmp_path) as reader:
        apply(writer, A + "CREATE STREAM b AS SELECT id, x FROM a;")
        reader.refresh()
        assert "B" in reader.catalog.sources
        apply(writer, "DROP STREAM b;")
        assert left(tmp_path) == [A]
        reader.refresh()
        assert list(reader.catalog.sources) == ["A"]
        before = reader.generation
        reader.refresh()
        assert reader.generation == before
        apply(reader, "CREATE STREAM c AS SELECT id, x FROM a;")
        writer.refresh()
        assert list(writer.catalog_state().queries) == ["CSAS_C_3"]


def test_a_log_that_grows_is_compacted_on_the_way(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        apply(database, A)
        for _ in range(MANY):
            apply(database, "CREATE STREAM b AS SELECT id, x FROM a; DROP STREAM b;")
        assert len(CommandLog(database.broker).all()) < MANY
        assert CommandLog(database.broker).count == 2 * MANY + 1


def test_what_cannot_be_read_here_keeps_everything(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        apply(database, A + "CREATE STREAM b AS SELECT id, x FROM a; DROP STREAM b;")
        broker = database.broker
        CommandLog(broker).append(Command(3, "CREATE STREAM z AS SELECT NOT_HERE(id) AS n FROM a;", "CSAS_Z_3"))
        assert len(left(tmp_path)) == 4


def test_a_command_that_comes_meanwhile_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as database:
        apply(database, A + "CREATE STREAM b AS SELECT id, x FROM a; DROP STREAM b;")
        commands = CommandLog(database.broker)
        whole = commands.all

        def with_another_behind() -> list[Command]:
            found = whole()
            monkeypatch.undo()
            apply(database, "CREATE TYPE t AS INT;")
            return found

        monkeypatch.setattr(commands, "all", with_another_behind)
        assert compact(commands, database.broker) == 3
        assert len(commands.all()) == 4


PROGRAM = """
import sys
from pathlib import Path
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.statements.catalog.command_log import CommandLog
from potok.statements.catalog.compaction import compact
broker = EmbeddedBroker.shared(Path(sys.argv[1]))
compact(CommandLog(broker), broker)
"""


@pytest.mark.parametrize(("failpoint", "stored"), [("commands.compact", 6), ("commands.compacted", 2)])
def test_a_process_killed_on_either_side_leaves_all_or_what_lives(tmp_path: Path, failpoint: str, stored: int) -> None:
    with opened(tmp_path) as database:
        apply(database, A + "CREATE STREAM b AS SELECT id, x FROM a; DROP STREAM b; CREATE TYPE t AS INT; DROP TYPE t;")
        apply(database, "CREATE STREAM c AS SELECT id, x FROM a;")
        before = as_data(database.catalog_state())
    environment = {**os.environ, "POTOK_FAILPOINT": failpoint}
    ended = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], check=False, env=environment, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert len(CommandLog(EmbeddedBroker.shared(tmp_path)).all()) == stored
    with opened(tmp_path) as again:
        assert as_data(again.catalog_state()) == before


NAMES = ("P", "Q", "R")
NONE = Command(-1, "")


def random_statement(chosen: random.Random, catalog_state: CatalogState) -> str:
    """A statement that may well be refused: what is refused is not written down."""
    name, other = chosen.choice(NAMES), chosen.choice(NAMES)
    replace = chosen.choice(("", "", "OR REPLACE "))
    query = chosen.choice([*catalog_state.queries, "ALL", "ALL"])
    return chosen.choice(
        (
            f"CREATE {replace}STREAM {name} (id VARCHAR KEY, x INT, m MONEY)"
            f" WITH (KAFKA_TOPIC = '{name}', VALUE_FORMAT = 'JSON', PARTITIONS = 1);",
            f"CREATE {replace}STREAM {name} AS SELECT * FROM {other};",
            f"CREATE {replace}STREAM {name} AS SELECT id, x, CAST(x AS MONEY) AS m FROM {other};",
            f"CREATE {replace}TABLE T_{name} AS SELECT id, COUNT(*) AS n FROM {other} GROUP BY id;",
            f"INSERT INTO {name} SELECT * FROM {other};",
            f"ALTER STREAM {name} ADD COLUMN c{chosen.randrange(3)} INT;",
            f"CREATE TYPE money AS {chosen.choice(('DECIMAL(8, 2)', 'BIGINT'))};",
            "DROP TYPE money;",
            f"DROP STREAM {name};",
            f"DROP TABLE T_{name};",
            f"{chosen.choice(('PAUSE', 'RESUME'))} {query};",
            f"TERMINATE {query};",
        )
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_compacted_log_makes_what_the_whole_one_makes(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    broker = EmbeddedBroker.shared(tmp_path)
    database = opened(tmp_path)
    whole: list[Command] = []
    apply(database, "CREATE TYPE money AS BIGINT;")
    for step in range(120):
        try:
            apply(database, random_statement(chosen, database.catalog_state()))
        except SqlError:
            continue
        whole += [command for command in CommandLog(broker).all() if command.sequence > (whole or [NONE])[-1].sequence]
        if step % 10 == 0:
            kept = living(whole, broker)
            assert as_data(replayed(kept, broker)) == as_data(replayed(whole, broker))
            if chosen.random() < 0.3:
                compact(CommandLog(broker), broker)
                assert as_data(replayed(CommandLog(broker).all(), broker)) == as_data(replayed(whole, broker))
    assert len(living(whole, broker)) < len(whole)
    with opened(tmp_path) as again:
        assert as_data(again.catalog_state()) == as_data(replayed(whole, broker))
