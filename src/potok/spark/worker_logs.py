"""What a worker says of itself, in this process and in those of Spark's tasks, and nothing of what libraries say to
themselves."""

from __future__ import annotations

import logging
import os

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}

TALKATIVE = ("py4j", "uvicorn", "asyncio")
"""They tell each call, at levels at which people ask for what their program does."""

VARIABLE = "POTOK_WORKER_LOG"
"""Has the level in the processes of Spark's tasks."""

_chosen = ""


def write_logs(level: str) -> None:
    """Write what is of a level or above to the terminal. What agents log is written as well, by the tasks of a Spark
    that is started after this."""
    global _chosen
    _chosen = level
    logging.basicConfig(
        level=LEVELS[level], format="[%(asctime)s] %(levelname)s: %(message)s", datefmt="%Y-%m-%d %H:%M:%S"
    )
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(LEVELS[level], logging.WARNING))


def write_logs_as_told() -> None:
    """Do the same in a process of Spark's, if the one that started it said so."""
    level = os.environ.get(VARIABLE, "")
    if level in LEVELS:
        write_logs(level)


def told_to_tasks() -> dict[str, str]:
    """What Spark is told, so that its tasks know the level."""
    return {f"spark.executorEnv.{VARIABLE}": _chosen} if _chosen else {}
