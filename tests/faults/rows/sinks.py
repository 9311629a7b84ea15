"""Sinks outside the log fail, or the driver dies near the commit while they get a batch."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq

from potok import StreamsBuilder
from tests.faults.numbers import Numbers, started
from tests.faults.row import Proof, row
from tests.faults.scene import Scene
from tests.sinks.web import web_server

HERE = "tests.faults.rows.sinks"

COUNT_WRITES = """
CREATE TABLE writes (n bigint);
CREATE TABLE taken (n bigint PRIMARY KEY);
CREATE FUNCTION count_write() RETURNS trigger AS
$$ BEGIN INSERT INTO writes VALUES (NEW.n); RETURN NULL; END $$ LANGUAGE plpgsql;
CREATE TRIGGER counted AFTER INSERT OR UPDATE ON taken FOR EACH ROW EXECUTE FUNCTION count_write();
"""


def to_files(prefix: str, watch: list[Any] | None, path: str) -> StreamsBuilder:
    builder, numbers = started(prefix, watch)
    numbers.to_files(path)
    return builder


def to_http(prefix: str, watch: list[Any] | None, url: str) -> StreamsBuilder:
    builder, numbers = started(prefix, watch)
    numbers.to_http(url, batch=7, give_up_after="2 minutes")
    return builder


def to_postgres(prefix: str, watch: list[Any] | None, url: str) -> StreamsBuilder:
    builder, numbers = started(prefix, watch)
    numbers.to_postgres(url, "taken", key="n", give_up_after="2 minutes")
    return builder


def to_function(prefix: str, watch: list[Any] | None, path: str, failures: int) -> StreamsBuilder:
    builder, numbers = started(prefix, watch)
    numbers.to_callable(failing(Path(path), failures), name="failing")
    return builder


def failing(directory: Path, failures: int) -> Callable[[list[Any], int], None]:
    """A function that the outside world fails in its third batch, so many times; it replaces what a batch brought."""

    def keep(records: list[Any], batch: int) -> None:
        tries = len(list(directory.glob("failure-*")))
        if batch >= 3 and tries < failures:
            (directory / f"failure-{tries}").touch()
            raise OSError("no route to host")
        draft = directory / "draft"
        draft.write_text(json.dumps([record.value.n for record in records]))
        os.replace(draft, directory / f"{batch}.json")

    return keep


def _kill_at_delivery(failpoint: str, scene: Scene) -> Proof:
    files = scene.directory / "files"
    numbers = Numbers(scene, f"{HERE}:to_files", path=str(files))
    batch = scene.random.randint(1, 4)
    numbers.run(failpoint=f"{failpoint}:{batch}").must_be_killed()
    numbers.run().must_be_well()
    found = pq.read_table(files).column("n").to_pylist()
    return numbers.prove(found, f"killed at {failpoint} of batch {batch}, beside files of Parquet")


for _point in ("deliver.before", "deliver.done", "deliver.after"):
    row(f"kill-{_point}", f"the driver dies at {_point}, with a sink outside the log")(
        lambda scene, point=_point: _kill_at_delivery(point, scene)
    )


@row("http-errors", "a web server answers 500 for a while, or hangs up")
def http_errors(scene: Scene) -> Proof:
    taken: list[int] = []
    bad = scene.random.randint(5, 15)
    with web_server() as site:

        def answer(body: Any, _: int) -> int | None:
            if len(site.requests) <= bad:
                return 500 if len(site.requests) % 2 else None
            taken.extend(item["n"] for item in body)
            return 200

        site.answer = answer
        numbers = Numbers(scene, f"{HERE}:to_http", url=site.url)
        numbers.run().must_be_well()
    return numbers.prove(taken, f"{bad} requests answered by 500 or not at all, and sent again")


@row("postgres-restarted", "PostgreSQL stops as in a crash, and starts again", servers=("postgres",))
def postgres_restarted(scene: Scene) -> Proof:
    server = scene.servers.postgres()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {scene.name}")
    url = server.url.rsplit("/", 1)[0] + f"/{scene.name}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(COUNT_WRITES)
    numbers = Numbers(scene, f"{HERE}:to_postgres", url=url)
    gate = numbers.gate()
    driver = numbers.start(gate=gate)
    scene.at_gate(gate, driver)
    server.stop(signal.SIGQUIT)
    gate.let_go()
    server.start()
    scene.ended(driver).must_be_well()
    with psycopg.connect(url) as connection:
        found = [int(row[0]) for row in connection.execute("SELECT n FROM writes").fetchall()]
    return numbers.prove(found, f"PostgreSQL restarted at record {gate.number}; the query waited for it")


@row("function-fails", "a function that gets the records raises OSError three times, and then does not")
def function_fails(scene: Scene) -> Proof:
    kept, failures = scene.place("kept"), 3
    numbers = Numbers(scene, f"{HERE}:to_function", path=str(kept), failures=failures)
    for _ in range(failures):
        numbers.run().must_say("OSError: no route to host", "nothing was skipped: restart the query")
    numbers.run().must_be_well()
    found = [n for path in kept.glob("*.json") for n in json.loads(path.read_text())]
    return numbers.prove(found, f"the query stopped {failures} times, skipped nothing, and got through")
