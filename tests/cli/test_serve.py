from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.runtime.queries.lock import QueryLock, QueryTakenOver

ERRORS = "errors.txt"

SCRIPT = """
CREATE STREAM orders (id VARCHAR KEY, user_id VARCHAR, amount DOUBLE)
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON');
CREATE TABLE totals AS SELECT user_id, SUM(amount) AS total FROM orders GROUP BY user_id EMIT CHANGES;
"""


def test_other_machines_are_not_served_without_tokens(potok) -> None:
    refused = potok("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 1
    assert "--tokens" in refused.err


def test_a_script_with_a_query_that_keeps_running_is_refused(potok, tmp_path: Path) -> None:
    (tmp_path / "init.sql").write_text("SHOW STREAMS;\nPRINT orders;\n")
    refused = potok("serve", "--port", "0", "--script", "init.sql")
    assert refused.code == 1
    assert "the rows of this query would not be displayed" in refused.err
    assert "init.sql:2:1" in refused.err


def test_the_queries_of_a_log_are_run_by_one_server(potok, tmp_path: Path) -> None:
    lock = QueryLock(tmp_path / "data" / "shared" / "sql", "sql")
    try:
        refused = potok("serve", "--port", "0", "--broker", str(tmp_path / "data"))
    finally:
        lock.release()
    assert (refused.code, "another process already runs the queries" in refused.err) == (1, True)
    assert "potok sql --server" in refused.err


def test_tokens_that_cannot_be_read_are_an_error(potok) -> None:
    refused = potok("serve", "--tokens", "nowhere.toml")
    assert (refused.code, "nowhere.toml" in refused.err) == (1, True)


@contextmanager
def serving(directory: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address."""
    program = [sys.executable, "-c", "from potok.cli.main import main; main()", "serve", "--port", "0", "--json"]
    environment = {name: value for name, value in os.environ.items() if name != "POTOK_BROKER"}
    errors = (directory / ERRORS).open("w")
    process = subprocess.Popen(
        [*program, *words], cwd=directory, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
    )
    try:
        yield process, heard(process, "serving")["url"]
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        errors.close()


def heard(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{") and (reported := json.loads(line))["event"] == event:
            return dict(reported)
    raise AssertionError(f"the server ended without {event}")


@pytest.mark.spark
def test_a_server_runs_its_script_once_answers_and_stops_in_order(potok, tmp_path: Path) -> None:
    (tmp_path / "init.sql").write_text(SCRIPT)
    insert = "INSERT INTO orders VALUES ('o1', 'anna', 1.5);"
    push = "SET 'auto.offset.reset' = 'earliest'; SELECT user_id, total FROM totals EMIT CHANGES LIMIT 1;"
    with serving(tmp_path, "--script", "init.sql") as (process, url):
        heard(process, "running")
        done = potok("sql", "--server", url, "--json", "-e", f"{insert} {push} SELECT * FROM totals;")
        assert done.code == 0, done.err
        rows = [reported["row"] for reported in done.objects if "row" in reported]
        assert rows == [{"USER_ID": "anna", "TOTAL": 1.5}]
        assert done.objects[-1]["rows"] == [{"USER_ID": "anna", "TOTAL": 1.5}]
        # Beside the server, statements on the same log are handed over to it, and tables can be read.
        assert potok("sql", "--json", "-e", "SELECT total FROM totals").objects[0]["rows"] == [{"TOTAL": 1.5}]
        other = potok("sql", "--json", "-e", "SHOW QUERIES").objects[0]["rows"]
        assert [row["Status"] for row in other] == ["RUNNING"]
        process.send_signal(signal.SIGTERM)
        heard(process, "stopped")
        assert process.wait(60) == 0
    (listed,) = potok("sql", "--json", "-e", "SHOW QUERIES").objects
    assert [row["Status"] for row in listed["rows"]] == ["STOPPED"]


@pytest.mark.spark
def test_a_server_whose_jvm_is_killed_ends_and_says_why(potok, tmp_path: Path) -> None:
    (tmp_path / "init.sql").write_text(SCRIPT)
    with serving(tmp_path, "--script", "init.sql") as (process, url):
        heard(process, "running")
        inserted = potok("sql", "--server", url, "-e", "INSERT INTO orders VALUES ('o1', 'anna', 1.5);")
        assert inserted.code == 0, inserted.err
        below = psutil.Process(process.pid).children(recursive=True)
        (jvm,) = [child for child in below if child.name() == "java"]
        jvm.kill()
        assert process.wait(120) == 1
    reported = (tmp_path / ERRORS).read_text()
    assert "Spark's JVM is gone" in reported
    assert "start it again to resume all queries" in reported
    assert "Traceback" not in reported


def pause(process: subprocess.Popen[str], broker: EmbeddedBroker) -> None:
    """Stop a process between two writes to the metadata: LMDB would keep all others waiting for it."""
    for _ in range(50):
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        probe = threading.Thread(target=broker.set_metadata, args=({"probe": b"1"},), daemon=True)
        probe.start()
        probe.join(5)
        if not probe.is_alive():
            return
        process.send_signal(signal.SIGCONT)
        probe.join()
    raise AssertionError("the process is always writing")


@pytest.mark.spark
@pytest.mark.kill
@pytest.mark.timeout(600)
def test_a_server_that_was_paused_and_replaced_names_the_other_and_exits_with_3(potok, tmp_path: Path) -> None:
    (tmp_path / "init.sql").write_text(SCRIPT)
    first_place, second_place, data = (tmp_path / name for name in ("first", "second", "data"))
    for place in (first_place, second_place):
        place.mkdir()
    shared = ("--broker", str(data))
    with ExitStack() as stack:
        first, url = stack.enter_context(serving(first_place, *shared, "--script", str(tmp_path / "init.sql")))
        heard(first, "running")
        insert = "INSERT INTO orders VALUES ('o1', 'anna', 1.5);"
        push = "SET 'auto.offset.reset' = 'earliest'; SELECT user_id, total FROM totals EMIT CHANGES LIMIT"
        assert potok("sql", "--server", url, "-e", f"{insert} {push} 1;").code == 0
        pause(first, EmbeddedBroker.shared(data))
        for lock in (data / "shared" / "sql" / "lock", *data.glob("queries/*/lock")):
            # As if the machine of the first one had lost its locks; it still has its files open.
            lock.unlink()
        second, other = stack.enter_context(serving(second_place, *shared))
        heard(second, "running")
        first.send_signal(signal.SIGCONT)
        assert first.wait(120) == QueryTakenOver.exit_code
        reported = (first_place / ERRORS).read_text()
        assert f"was taken over by process {second.pid} on {socket.gethostname()}" in " ".join(reported.split())
        assert "Traceback" not in reported
        insert = "INSERT INTO orders VALUES ('o2', 'anna', 2.0);"
        done = potok("sql", "--server", other, "--json", "-e", f"{insert} {push} 2; SELECT total FROM totals;")
        assert done.code == 0, done.err
        assert done.objects[-1]["rows"] == [{"TOTAL": 3.5}]
        assert second.poll() is None
        second.send_signal(signal.SIGTERM)
        heard(second, "stopped")
        assert second.wait(60) == 0
