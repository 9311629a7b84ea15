"""Structured logs: one JSON object per line, with what the message belongs to and without secrets."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

from potok.errors import SinkError
from potok.monitoring.logs import JsonFormatter, log_context
from potok.redact import remember

LOG = logging.getLogger("potok.test")


def formatted(record: logging.LogRecord) -> dict[str, object]:
    line = JsonFormatter().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    return LOG.makeRecord("potok.test", logging.WARNING, "file.py", 1, message, args, None, extra=extra)


def test_a_message_has_its_time_level_logger_and_text() -> None:
    made = record("query %s: two\nlines", "orders")
    made.created, made.msecs = 1_700_000_000.25, 250.0
    assert formatted(made) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "WARNING",
        "logger": "potok.test",
        "message": "query orders: two\nlines",
    }


def test_a_message_names_what_it_belongs_to() -> None:
    with log_context(query="orders", batch=7, epoch=2, trace_id=None), log_context(step="filter"):
        found = formatted(record("slow"))
    assert (found["query"], found["batch"], found["epoch"], found["step"]) == ("orders", 7, 2, "filter")
    assert "trace_id" not in found
    assert "query" not in formatted(record("later"))


def test_fields_that_are_given_with_a_message_are_fields() -> None:
    assert formatted(record("slow", hint="wait", sizes=[1, 2], odd=object))["sizes"] == [1, 2]


def test_an_error_has_its_type_message_hint_and_stack() -> None:
    made = record("failed")
    try:
        raise SinkError("the sink is full", hint="empty it")
    except SinkError as error:
        made.exc_info = (type(error), error, error.__traceback__)
    error = formatted(made)["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["message"], error["hint"]) == ("SinkError", "the sink is full", "empty it")
    assert "test_logs.py" in error["stack"]


def test_secrets_do_not_appear() -> None:
    remember("hunter22222")
    assert "hunter22222" not in json.dumps(formatted(record("connecting with %s", "hunter22222")))


PROGRAM = """
import logging
from potok.cli.output import note, print_error
from potok.errors import SetupError
from potok.spark.worker_logs import set_up_logs

logging.basicConfig()
set_up_logs("", "json")
set_up_logs("", "json")
logging.getLogger("potok.log").warning("a warning")
logging.getLogger("potok.log").info("not written")
logging.getLogger("shop").error("of the program")
note("starting Spark")
print_error(SetupError("no disk", hint="buy one"))
"""


def test_everything_that_a_process_writes_to_stderr_is_json() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [(line["level"], line["logger"], line["message"]) for line in lines] == [
        ("WARNING", "potok.log", "a warning"),
        ("ERROR", "shop", "of the program"),
        ("INFO", "potok.cli", "starting Spark"),
        ("ERROR", "potok.cli", "no disk"),
    ]
    assert lines[-1]["hint"] == "buy one"
    assert ended.stdout == ""
