"""Configure logging in this process and in those of Spark's tasks; libraries that log every call stay silent."""

from __future__ import annotations

import logging
import os

from potok.monitoring.logs import write_json_logs, writes_json

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
"""Loggers of libraries that log each call, at levels at which users want to see their own program."""

VARIABLE = "POTOK_WORKER_LOG"
"""The environment variable with the level for the processes of Spark's tasks, and `json` if that is the format."""

FORMAT, TIME_FORMAT = "[%(asctime)s] %(levelname)s: %(message)s", "%Y-%m-%d %H:%M:%S"

_chosen = ""


def write_logs(level: str) -> None:
    """Write log records of a level or above to the terminal. Logs of agents are written too, by the tasks of a Spark
    that is started after this.
    """
    global _chosen
    _chosen = level
    logging.basicConfig(level=LEVELS[level], format=FORMAT, datefmt=TIME_FORMAT)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(LEVELS[level], logging.WARNING))


def write_task_logs() -> None:
    """Write logs in a process of Spark's tasks, if the driver asked for it."""
    level, _, log_format = os.environ.get(VARIABLE, "").partition(" ")
    if log_format == "json":
        write_json_logs(LEVELS.get(level, logging.WARNING))
    elif level in LEVELS:
        write_logs(level)


def task_log_options(log_level: str) -> dict[str, str]:
    """Return the options that pass the level to Spark's tasks: that of the worker, or else the setting `log_level`."""
    level = _chosen or log_level.lower()
    if writes_json():
        level = f"{level or 'warning'} json"
    return {f"spark.executorEnv.{VARIABLE}": level} if level else {}


def set_up_logs(log_level: str, log_format: str = "") -> None:
    """Apply the settings `log_level` and `log_format` to this process. Handlers of the program are kept, unless the
    format is JSON."""
    if log_format == "json":
        write_json_logs(LEVELS[_chosen or log_level.lower() or "warning"])
    if not log_level:
        return
    own = logging.getLogger("potok")
    own.setLevel(LEVELS[log_level.lower()])
    if not own.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(FORMAT, TIME_FORMAT))
        own.addHandler(handler)
