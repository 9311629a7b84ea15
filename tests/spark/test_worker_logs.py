"""What a worker writes to the terminal, and what it tells the processes of Spark's tasks about it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from potok.settings import Settings
from potok.spark import worker_logs
from potok.spark.session import spark_conf

TASK = """
import logging
from potok.spark.worker_logs import write_task_logs
write_task_logs()
logging.getLogger("shop").info("an order")
logging.getLogger("shop").warning("a strange order")
logging.getLogger("py4j.clientserver").info("a call")
"""


def written(level: str) -> list[str]:
    """Return what a Spark process logs at the given level, without the time."""
    reported = {**os.environ, worker_logs.VARIABLE: level}
    done = subprocess.run(
        [sys.executable, "-c", TASK], capture_output=True, text=True, timeout=60, check=True, env=reported
    )
    return [re.sub(r"^\[[-0-9: ]+\] ", "", line) for line in done.stderr.splitlines()]


def test_agents_log_at_the_level_of_their_worker_and_libraries_are_silent() -> None:
    assert written("info") == ["INFO: an order", "WARNING: a strange order"]
    assert written("warn") == ["WARNING: a strange order"]
    assert written("error") == []


def test_worker_logging_is_unchanged_without_a_configured_level() -> None:
    assert written("") == ["a strange order"]


def test_the_log_level_is_passed_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"spark.executorEnv.{worker_logs.VARIABLE}"
    monkeypatch.setattr(worker_logs, "_chosen", "")
    assert name not in spark_conf(Settings())
    monkeypatch.setattr(worker_logs, "_chosen", "info")
    assert spark_conf(Settings())[name] == "info"


def test_the_variable_is_not_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(worker_logs.VARIABLE, "info")
    Settings.load()


def test_the_setting_reaches_the_tasks_unless_the_worker_chose_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"spark.executorEnv.{worker_logs.VARIABLE}"
    monkeypatch.setattr(worker_logs, "_chosen", "")
    assert spark_conf(Settings(log_level="INFO"))[name] == "info"
    monkeypatch.setattr(worker_logs, "_chosen", "warn")
    assert spark_conf(Settings(log_level="INFO"))[name] == "warn"


DRIVER = """
import logging, sys
from potok.spark.worker_logs import set_up_logs
set_up_logs(sys.argv[1])
logging.getLogger("potok.runtime").info("a batch")
logging.getLogger("potok.runtime").warning("a late record")
logging.getLogger("shop").info("an order")
"""


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("INFO", ["INFO: a batch", "WARNING: a late record"]),
        ("WARN", ["WARNING: a late record"]),
        ("OFF", []),
        ("", ["a late record"]),
    ],
)
def test_the_setting_covers_the_loggers_of_potok_in_the_driver(level: str, expected: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", DRIVER, level], capture_output=True, text=True, timeout=60, check=True)
    assert [re.sub(r"^\[[-0-9: ]+\] ", "", line) for line in done.stderr.splitlines()] == expected
