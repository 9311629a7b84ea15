from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.log.waiting import until

from cli.shop import SHOP, leave_a_run, write_program
from potok.cli.queries.running import Interruption, Standing, summary
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.runtime.queries.lock import QueryLock
from potok.snapshots.progress import Progress
from potok.testing.outputs import read_outputs

FAILING = """
from potok import StreamsBuilder


def arrive():
    raise ValueError("the worker cannot take it")


class Brittle:
    def __reduce__(self):
        return arrive, ()


thing = Brittle()
builder = StreamsBuilder("failing")
builder.stream("orders").filter(lambda v: thing).to("copies")
"""


def send(data: Path, *values: str, topic: str = "orders") -> None:
    broker = open_broker(data)
    broker.create_topic(topic, exist_ok=True)
    broker.append(topic, [LogRecord(b"k", value.encode(), 1) for value in values])
    broker.close()


def order(user: str, amount: float) -> str:
    return json.dumps({"user_id": user, "amount": amount, "items": []})


def progress(**values: Any) -> Progress:
    given = dict.fromkeys(Progress.__dataclass_fields__, 0) | {"query": "shop", "state": "stopped"}
    return Progress(**(given | values))


def test_a_program_runs_to_the_end_and_resumes_from_there(potok, spark, tmp_path: Path) -> None:
    program = write_program(tmp_path / "program")
    send(tmp_path / "data", order("anna", 150.0), order("bela", 1.0), "broken")
    result = potok("run", program, "--until-end", "--json")
    ended = result.objects[-1]
    assert (result.code, ended["event"], ended["state"]) == (0, "ended", "stopped")
    assert (ended["records_in"], ended["records_out"]) == (3, 1)
    assert ended["dead_letters_by_reason"] == {"decode": 1}
    assert potok("tables", "get", "order_counts", "anna").out == "1\n"
    [large] = potok("consume", "high-value-orders", "--json").objects
    assert json.loads(large["value"])["fee"] == 1.5

    send(tmp_path / "data", order("anna", 2.0))
    changed = write_program(tmp_path / "program", SHOP.replace('name="sizes"', 'name="lengths"'), "changed.py")
    result = potok("run", changed, "--until-end", "--shards", "7")
    assert result.code == 0
    assert {line.split()[1] for line in result.out.splitlines() if line.startswith("fits")} == {"sizes", "lengths"}
    assert "--shards is ignored" in result.err
    assert result.err.splitlines()[-1].endswith(": 1 record in, 0 out, 1 batch, 0 dead letters")
    assert potok("tables", "get", "order_counts", "anna").out == "2\n"


def test_a_state_that_does_not_fit_is_refused_before_spark_starts(potok, tmp_path: Path) -> None:
    leave_a_run(tmp_path / "data", write_program(tmp_path / "program"))
    text = SHOP.replace("hours(1)", "hours(2)")
    result = potok("run", write_program(tmp_path / "program", text, "changed.py"))
    assert result.code == 1
    assert 'error: the state of query "shop" does not fit this topology: "hourly_totals"' in result.err


def test_an_error_of_the_query_ends_with_1(potok, spark, tmp_path: Path) -> None:
    send(tmp_path / "data", order("anna", 1.0))
    result = potok("run", write_program(tmp_path / "program", FAILING), "--until-end")
    assert result.code == 1
    *_, summed, error, hint = result.err.splitlines()
    assert summed.startswith('query "failing" failed after')
    assert error.startswith('error: query "failing" failed: ValueError: the worker cannot take it (')
    assert error.endswith("shop.py:6)"), "the line that raised it"
    assert hint.startswith("  hint: ")


def test_a_second_process_is_refused(potok, tmp_path: Path) -> None:
    lock = QueryLock(tmp_path / "data" / "queries" / "shop", "shop")
    result = potok("run", write_program(tmp_path / "program"))
    lock.release()
    assert result.code == 1
    assert 'error: query "shop" is already running' in result.err


@pytest.mark.spark
def test_an_interrupt_stops_it_at_the_end_of_a_batch(potok, tmp_path: Path) -> None:
    write_program(tmp_path / "program")
    send(tmp_path / "data", order("anna", 150.0))
    command = [sys.executable, "-c", "from potok.cli.main import main; main()", "run", "program/shop.py", "--json"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "POTOK_DRIVER_MEMORY": "512m"},
    )
    try:
        first = json.loads(process.stdout.readline())
        assert (first["event"], first["state"], first["total_in"]) == ("progress", "running", 1)
        assert potok("tables", "get", "order_counts", "anna").out == "1\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    ended = json.loads(out.splitlines()[-1])
    assert process.returncode == 0
    assert "error:" not in err and "Interrupt" not in err
    assert (ended["event"], ended["state"], ended["records_in"], ended["batches"]) == ("ended", "stopped", 1, 1)


HANGING = """
import time
from pathlib import Path

from potok import StreamsBuilder


def slow(value):
    Path("batch").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    return value


builder = StreamsBuilder("hanging")
builder.stream("orders").map_values(slow).to("copies")
"""


@pytest.mark.spark
def test_a_batch_that_does_not_end_in_time_is_abandoned_with_its_own_exit_code_and_repeated(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(HANGING)
    send(tmp_path / "data", "1", "2")
    words = [sys.executable, "-c", "from potok.cli.main import main; main()", "run", "hanging.py"]
    environment = os.environ | {"POTOK_BROKER": "file:./data", "POTOK_STOP_TIMEOUT": "100ms"}
    given: dict[str, Any] = {"cwd": tmp_path, "env": environment, "text": True}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **given)
    try:
        until((tmp_path / "batch").exists, 60)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 4
    assert "SIGTERM: stopping at the end of the batch, within 100ms" in err
    assert "error: the batch did not end within 100ms" in err
    (tmp_path / "go").touch()
    ended = subprocess.run([*words, "--until-end"], capture_output=True, check=False, timeout=120, **given)
    assert ended.returncode == 0, ended.stderr
    assert [each.value for each in read_outputs(open_broker(tmp_path / "data"), "copies")] == [1, 2]


def test_the_first_signal_asks_and_the_second_does_not_wait() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interruption() as interruption:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        interruption.wait_for_the_batch()
        os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.asked.is_set()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_summary_counts_this_run_only() -> None:
    old = progress(total_in=10, total_out=5, dead_letters_by_reason={"late": 2, "decode": 1})
    new = progress(
        total_in=14,
        total_out=5,
        dead_letters_by_reason={"late": 5, "decode": 1},
        started_at_ms=1000,
        committed_at_ms=3500,
    )
    assert summary(Standing(7, old), Standing(9, new)) == {
        "query": "shop",
        "state": "stopped",
        "uptime_ms": 2500,
        "batches": 2,
        "records_in": 4,
        "records_out": 0,
        "dead_letters_by_reason": {"late": 3},
    }
    first = summary(Standing(0, None), Standing(9, new))
    assert (first["batches"], first["records_in"], first["dead_letters_by_reason"]) == (9, 14, {"late": 5, "decode": 1})
