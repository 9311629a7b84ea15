"""Configure logging in this process and in those of Spark's tasks; libraries that log every call stay silent."""

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
    "off": logging.CRITICAL + 1,
}

TALKATIVE = ("py4j", "uvicorn", "asyncio")
"""They tell each call, at levels at which people ask for what their program does."""

VARIABLE = "POTOK_WORKER_LOG"
"""Has the level in the processes of Spark's tasks."""

FORMAT, TIME_FORMAT = "[%(asctime)s] %(levelname)s: %(message)s", "%Y-%m-%d %H:%M:%S"

_chosen = ""


def write_logs(level: str) -> None:
    """Write what is of a level or above to the terminal. What agents log is written as well, by the tasks of a Spark
    that is started after this."""
    global _chosen
    _chosen = level
    logging.basicConfig(level=LEVELS[level], format=FORMAT, datefmt=TIME_FORMAT)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(LEVELS[level], logging.WARNING))


def write_logs_as_told() -> None:
    """Do the same in a process of Spark's, if the one that started it said so."""
    level = os.environ.get(VARIABLE, "")
    if level in LEVELS:
        write_logs(level)


def told_to_tasks(log_level: str) -> dict[str, str]:
    """What Spark is told, so that its tasks know the level: that of the worker, or else the setting `log_level`."""
    level = _chosen or log_level.lower()
    return {f"spark.executorEnv.{VARIABLE}": level} if level else {}


def set_log_level(log_level: str) -> None:
    """Apply the setting `log_level` to Potok's own loggers in this process. Handlers of the program are left alone."""
    if not log_level:
        return
    own = logging.getLogger("potok")
    own.setLevel(LEVELS[log_level.lower()])
    if not own.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(FORMAT, TIME_FORMAT))
        own.addHandler(handler)
