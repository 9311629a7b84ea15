"""A capture of a large table dies at random moments of its snapshot and of its stream, while the table changes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import orjson

from potok.log.embedded.embedded_broker import EmbeddedBroker
from tests.faults.row import Proof, row
from tests.faults.scene import Scene
from tests.servers import MariadbServer, PostgresServer

ROWS, KILLS = 1_000_000, 30
CHANGES = ROWS // 10
_PER_TRANSACTION = 500
_TABLE = "CREATE TABLE users (id int PRIMARY KEY, name varchar(100), balance int NOT NULL)"
_FILL = {
    PostgresServer: f"INSERT INTO users SELECT i, 'user ' || i, 0 FROM generate_series(1, {ROWS}) i",
    MariadbServer: f"INSERT INTO users SELECT seq, CONCAT('user ', seq), 0 FROM seq_1_to_{ROWS}",
}
_PLACE = ("lsn", "file", "pos", "row")

Server = PostgresServer | MariadbServer


@row(
    "cdc-postgres", f"a capture dies {KILLS} times while it reads {ROWS:,} rows of PostgreSQL, and 10 % of them change"
)
def cdc_postgres(scene: Scene) -> Proof:
    return _play(scene, scene.servers.logical_postgres())


@row("cdc-mariadb", f"a capture dies {KILLS} times while it reads {ROWS:,} rows of MariaDB, and 10 % of them change")
def cdc_mariadb(scene: Scene) -> Proof:
    return _play(scene, scene.servers.mariadb())


def _play(scene: Scene, server: Server) -> Proof:
    database = f"shop_{scene.name}"
    server.create_database(database)
    with closing(_connect(server, database)) as connection:
        for statement in (_TABLE, _FILL[type(server)]):
            connection.cursor().execute(statement)
    directory = scene.place("capture")
    # Slots belong to the whole server, which other plays of the row use too.
    toml = f'[{scene.name}]\nurl = "{server.url_of(database)}"\ntables = ["users"]\nheartbeat = "1 s"\n'
    (directory / "cdc.toml").write_text(toml)
    broker = EmbeddedBroker(directory / "data")
    topic = f"{scene.name}.{database if isinstance(server, MariadbServer) else 'public'}.users"
    stopping = threading.Event()
    chance = Random(scene.random.random())
    changing = threading.Thread(
        target=_change, args=(server, database, chance, lambda: _landed(broker, topic), stopping), daemon=True
    )
    changing.start()
    try:
        for number in range(KILLS):
            _run_and_kill(scene, broker, topic, directory, at_start=number % 5 == 0)
    finally:
        stopping.set()
        changing.join()
    process = _start(directory)
    try:
        with closing(_connect(server, database)) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT id, name, balance FROM users")
            wanted = {id_: (name, balance) for id_, name, balance in cursor.fetchall()}
        scene.wait_until(lambda: _has_all(scene, broker, topic, wanted), "the topic to equal the table")
    finally:
        process.terminate()
        process.wait()
    reads, repeated = _repeated(broker, topic)
    assert not repeated, f"{repeated} changes landed twice"
    broker.close()
    return Proof(f"killed {KILLS} times, {reads:,} rows of the snapshot and {CHANGES:,} changed rows")


def _run_and_kill(scene: Scene, broker: EmbeddedBroker, topic: str, directory: Path, *, at_start: bool) -> None:
    """Run a capture until some moment; the moments are spread over everything that lands, and some are in the start."""
    target = scene.random.randint(0, 2 * (ROWS + CHANGES) // KILLS) + _landed(broker, topic)
    process = _start(directory)
    if at_start:
        threading.Event().wait(scene.random.random())
    else:
        scene.wait_until(lambda: _passed(scene, broker, topic, target, process), f"record {target}")
    process.kill()
    process.wait()


def _change(
    server: Server, database: str, random: Random, landed: Callable[[], int], stopping: threading.Event
) -> None:
    """Change a tenth of the table, while it is read, in small transactions: updates, deletes, inserts, other keys."""
    with closing(_connect(server, database)) as connection:
        cursor = connection.cursor()
        count = CHANGES // _PER_TRANSACTION
        for number in range(count):
            while landed() < number * ROWS // count and not stopping.is_set():
                stopping.wait(0.01)
            first = random.randrange(ROWS)
            cursor.execute(f"UPDATE users SET balance = balance + 1 WHERE id BETWEEN {first} AND {first + 480}")
            cursor.execute(f"DELETE FROM users WHERE id BETWEEN {first + 481} AND {first + 490}")
            cursor.execute(f"UPDATE users SET id = -id WHERE id BETWEEN {first + 491} AND {first + 495}")
            values = ", ".join(f"({2 * ROWS + number * 5 + each}, 'new', 0)" for each in range(5))
            cursor.execute(f"INSERT INTO users VALUES {values}")


def _connect(server: Server, database: str) -> Any:
    if isinstance(server, MariadbServer):
        return server.connect(database)
    import psycopg

    return psycopg.connect(server.url_of(database), autocommit=True)


def _start(directory: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from potok.cli.main import main; main()", "cdc", "cdc.toml", "--json"]
    environment = {**os.environ, "POTOK_BROKER": "file:./data"}
    with (directory / "capture.log").open("ab") as log:
        return subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log)


def _landed(broker: EmbeddedBroker, topic: str) -> int:
    return sum(broker.end_offsets(topic).values()) if broker.has_topic(topic) else 0


def _passed(scene: Scene, broker: EmbeddedBroker, topic: str, target: int, process: subprocess.Popen[bytes]) -> bool:
    """Whether so much has landed, or nothing is left to land."""
    assert process.poll() is None, "the capture ended by itself"
    stored = broker.get_metadata(f"cdc/{scene.name}")
    tables = orjson.loads(stored)["tables"].values() if stored else ()
    return _landed(broker, topic) >= target or bool(tables and all(each["done"] for each in tables))


def _has_all(scene: Scene, broker: EmbeddedBroker, topic: str, wanted: dict[int, tuple[str, int]]) -> bool:
    stored = orjson.loads(broker.get_metadata(f"cdc/{scene.name}") or b"{}")
    if not stored or not all(each["done"] for each in stored["tables"].values()):
        return False
    found: dict[bytes, Any] = {}
    for batch in broker.read(topic, 0, 0, broker.end_offsets(topic)[0]):
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        found.update(zip(keys, values, strict=True))
    rows = [orjson.loads(value)["after"] for value in found.values() if value is not None]
    return {each["id"]: (each["name"], each["balance"]) for each in rows if each is not None} == wanted


def _repeated(broker: EmbeddedBroker, topic: str) -> tuple[int, int]:
    """Return the rows of the snapshot, and how many rows and changes have landed more than once."""
    reads, changes = [], []
    for batch in broker.read(topic, 0, 0, broker.end_offsets(topic)[0]):
        for value in batch.column("value").to_pylist():
            if value is None:
                continue
            event = orjson.loads(value)
            if event["op"] == "r":
                reads.append(event["after"]["id"])
            else:
                source = event["source"]
                changes.append((event["op"], *(source[name] for name in _PLACE if name in source)))
    return len(reads), len(reads) - len(set(reads)) + len(changes) - len(set(changes))
