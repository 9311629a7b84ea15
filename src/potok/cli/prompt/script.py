"""Execute a script statement by statement, and show each result as soon as it is available."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from potok.cli.output import counted, warn
from potok.cli.prompt.display import Display
from potok.cli.prompt.targets.target import Target
from potok.errors import Location, SetupError
from potok.sql.errors import Refused, SqlError, SqlSyntaxError
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from potok.statements.results import Done, Push, Result, Rows

LOOK_S = 0.2
DEEPEST = 16
"""Maximum depth of scripts that run scripts."""


class Script:
    """Executes scripts on a target.

    Args:
        settles: Wait for the queries that the script started before reading, so that a script gives the same result
            each time. The prompt does not wait.
    """

    def __init__(self, target: Target, display: Display, *, settles: bool) -> None:
        self._target, self.display, self._settles = target, display, settles
        self._depth = 0
        self._dead_letters: dict[str, int] | None = None

    def run(self, text: str, file: str = "") -> None:
        """Execute a script; raises the first error with its position. Statements before it have taken effect.

        A script that cannot be parsed as a whole is not executed.
        """
        if self._dead_letters is None:
            self._dead_letters = dict(self._target.dead_letters())
        try:
            statements = parse_script(text, self._target.variables)
        except SqlError as error:
            raise located(error, text, file) from None
        for parsed in statements:
            try:
                self._carry_out(parsed)
            except SqlError as error:
                raise located(error, text, file) from None

    def _carry_out(self, parsed: ast.Parsed) -> None:
        if isinstance(parsed.statement, ast.RunScript):
            self._run_script(parsed.statement)
            return
        if self._settles and isinstance(parsed.statement, ast.Query) and parsed.statement.query.emit is None:
            self.settle()
        self._show(parsed, self._target.run(parsed))

    def settle(self) -> None:
        """Wait for the queries, and report their dead letters."""
        self._target.settle()
        self.report_dead_letters()

    def report_dead_letters(self) -> None:
        """Warn of dead letters since the last call."""
        before, self._dead_letters = self._dead_letters or {}, dict(self._target.dead_letters())
        for query, count in self._dead_letters.items():
            if count > before.get(query, 0):
                count_text = counted(count - before.get(query, 0), "dead letter")
                warn(f"{count_text} of query {query}: {self._target.dead_letters_command(query)}")

    def _show(self, parsed: ast.Parsed, result: Result) -> None:
        match result:
            case Done():
                self.display.done(parsed.text, result)
            case Rows():
                self.display.rows(parsed.text, result)
            case Push():
                self._follow(parsed, result)

    def _follow(self, parsed: ast.Parsed, push: Push) -> None:
        """Show rows until the query ends, or until Ctrl-C."""
        rendered = self.display.push(parsed.text, push, as_lines=isinstance(parsed.statement, ast.Print))
        with push, interruptible() as interrupted:
            while not interrupted.is_set() and (rows := push.next(LOOK_S)) is not None:
                if rows:
                    rendered.add(rows)
        rendered.end(interrupted=interrupted.is_set())
        if push.left_out:
            count_text = counted(push.left_out, "record")
            warn(f"{count_text} could not be processed; SELECT * FROM KSQL_PROCESSING_LOG; shows why")
        if interrupted.is_set() and self._settles:
            raise KeyboardInterrupt

    def _run_script(self, statement: ast.RunScript) -> None:
        path = Path(statement.path)
        if self._depth == DEEPEST:
            hint = "check whether a script runs itself"
            raise Refused(f"scripts are nested more than {DEEPEST} deep", hint=hint, location=statement.at)
        try:
            text = read_text(path)
        except NoScript as error:
            raise Refused(error.message, hint=error.hint, location=statement.at) from error
        self._depth += 1
        try:
            self.run(text, str(path))
        finally:
            self._depth -= 1


def check_ends(text: str, file: str) -> None:
    """Raise `Refused` for a statement that never ends and whose rows would not be shown."""
    try:
        for parsed in parse_script(text):
            statement = parsed.statement
            if isinstance(statement, ast.Print) or (isinstance(statement, ast.Query) and statement.query.emit):
                hint = "remove it, or create a stream: CREATE STREAM name AS SELECT ..."
                raise Refused("the rows of this query would not be displayed", hint=hint, location=parsed.at)
    except SqlError as error:
        raise located(error, text, file) from None


def located(error: SqlError, text: str, file: str) -> SqlError:
    """Return the error with its line in the whole text. The position of an error in a nested script is not changed."""
    if error.at is not None:
        return error
    if error.location is not None:
        if not isinstance(error, SqlSyntaxError):
            # The error was raised for the statement alone, so its lines are relative to the statement.
            error.line_text = ""
        error.in_text(text)
        if file:
            error.at = Location(file, error.location.line)
    return error


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Make Ctrl-C set the event instead of raising. Other threads than the main one do not receive it."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


class NoScript(SetupError):
    """The file cannot be read."""


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise NoScript(f"cannot read {path}: {why}", hint="name a file that contains SQL statements") from error
