"""`potok sql --check`: report all errors of scripts without executing them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from potok.cli.output import note, print_error, print_json
from potok.cli.prompt.script import located
from potok.log.open import log_exists, open_broker
from potok.redact import redact_url
from potok.settings import Settings
from potok.sql.errors import SqlError
from potok.statements.database import Database
from potok.statements.session import SqlSession


def check_scripts(settings: Settings, scripts: Sequence[tuple[str, str]], *, as_json: bool) -> int:
    """Return the number of errors in scripts, given as name and text. Each is checked against the current catalog of
    the log, or against an empty one if there is no log."""
    wrong = 0
    with _looked_at(settings) as database:
        for name, text in scripts:
            found = SqlSession(database).check(text)
            wrong += len(found)
            for error in found:
                _report(located(error, text, name), name, as_json=as_json)
            if not found and not as_json:
                against = (
                    f", on the {len(known)} streams and tables of {redact_url(settings.broker)}"
                    if (known := database.catalog.sources)
                    else ""
                )
                note(f"{name}: no errors{against}")
    return wrong


@contextmanager
def _looked_at(settings: Settings) -> Iterator[Database]:
    """Open the log without creating its directory."""
    if log_exists(settings.broker):
        with Database(open_broker(settings.broker, settings), settings, runs=False) as database:
            yield database
        return
    with tempfile.TemporaryDirectory(prefix="potok-check-") as directory:
        broker = open_broker(f"file:{directory}", settings)
        try:
            with Database(broker, settings, runs=False) as database:
                yield database
        finally:
            broker.close()


def _report(error: SqlError, name: str, *, as_json: bool) -> None:
    if not as_json:
        print_error(error)
        return
    document: dict[str, Any] = {
        "file": name,
        "error": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
    }
    if error.location is not None:
        document |= {"line": error.location.line, "column": error.location.column, "length": error.location.length}
    print_json(document)
