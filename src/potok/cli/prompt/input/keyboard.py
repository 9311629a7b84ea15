"""The interactive prompt: multi-line statements with completion, highlighting and history."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import has_completions, is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import clear
from prompt_toolkit.styles import Style

from potok.cli.output import console, note, print_error
from potok.cli.prompt.display import Drawn, Objects
from potok.cli.prompt.input.suggestions import OWN_COMMANDS, suggestions
from potok.cli.prompt.input.tokens import KEYWORDS, TYPES, pieces
from potok.cli.prompt.script import Script
from potok.cli.prompt.targets.target import Names, Target
from potok.errors import PotokError
from potok.sql.syntax.parse import is_complete

PROMPT = "potok> "
MORE = "  ...> "
REFRESH_S = 1.0
"""How often the status line of the queries is refreshed."""


class Keyboard:
    """Reads statements from the terminal and executes them, until `exit` or Ctrl-D."""

    def __init__(
        self,
        target: Target,
        script: Script,
        *,
        history: History | None = None,
        input_: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._target, self._script = target, script
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            lexer=SqlLexer(),
            style=STYLE,
            completer=ThreadedCompleter(SqlCompleter(target.names)),
            complete_while_typing=True,
            history=history or InMemoryHistory(),
            key_bindings=_keys(),
            prompt_continuation=_continuation,
            bottom_toolbar=_toolbar(target),
            refresh_interval=REFRESH_S,
            input=input_,
            output=output,
        )

    def run(self) -> None:
        while True:
            try:
                # Output of other threads, such as the error of a query, is printed above the input line.
                with patch_stdout(raw=True):
                    text = self._session.prompt([("class:prompt", PROMPT)])
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if text.strip() and not self._answer(text):
                return

    def _answer(self, text: str) -> bool:
        """Execute the input; return False to quit."""
        command, _, rest = text.strip().rstrip(";").partition(" ")
        if command.upper() in ("EXIT", "QUIT"):
            return False
        try:
            if command.upper() in OWN_COMMANDS:
                self._own(command.upper(), rest)
            else:
                self._script.run(text)
            self._script.report_dead_letters()
        except PotokError as error:
            print_error(error)
        except KeyboardInterrupt:
            note("interrupted; the statement may still take effect")
        sys.stdout.flush()
        return True

    def _own(self, command: str, rest: str) -> None:
        if command == "HELP":
            print_help(rest)
        elif command == "CLEAR":
            clear()
        elif rest.strip().lower() in ("json", "table"):
            self._script.display = Objects() if rest.strip().lower() == "json" else Drawn()
        else:
            note("write: output json, or: output table")


class SqlCompleter(Completer):
    def __init__(self, names: Callable[[], Names]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        # A completer that raises would end the prompt.
        names = Names()
        with contextlib.suppress(PotokError, OSError):
            names = self._names()
        for found in suggestions(document.text, document.cursor_position, names):
            yield Completion(found.text, -found.length, display_meta=found.about)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~is_done)
    def _(event: KeyPressEvent) -> None:
        """Bind Enter: after the `;` that ends a statement it executes the input, otherwise it starts a new line."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif not buffer.document.text_after_cursor.strip() and is_answerable(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("tab", filter=~has_completions)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.start_completion(insert_common_part=True)

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def is_answerable(text: str) -> bool:
    """Return whether Enter ends the input: it is empty, a command of the prompt, or statements up to the last `;`."""
    first = text.strip().rstrip(";").split(" ")[0].upper()
    return not text.strip() or first in (*OWN_COMMANDS, "QUIT") or is_complete(text)


def _continuation(width: int, _: int, wrap_count: int) -> StyleAndTextTuples:
    return [("class:prompt.more", MORE.rjust(width) if not wrap_count else " " * width)]


def _toolbar(target: Target) -> Callable[[], str]:
    def text() -> str:
        try:
            return target.status()
        except (PotokError, OSError) as error:
            return str(error).splitlines()[0]

    return text


def history_file() -> History:
    """Open the history of earlier sessions. Only its owner can read it, because statements may contain secrets."""
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "potok"
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = state / "sql-history"
        path.touch(mode=0o600)
    except (OSError, RuntimeError):
        # The user may have no home directory.
        return InMemoryHistory()
    return FileHistory(str(path))


FORMS: Final = {
    "CREATE STREAM": "CREATE [OR REPLACE] [SOURCE] STREAM [IF NOT EXISTS] name (column type [KEY], ...)\n"
    "  WITH (KAFKA_TOPIC = 'topic', VALUE_FORMAT = 'JSON', ...);",
    "CREATE TABLE": "CREATE [OR REPLACE] [SOURCE] TABLE [IF NOT EXISTS] name (column type [PRIMARY KEY], ...)\n"
    "  WITH (KAFKA_TOPIC = 'topic', VALUE_FORMAT = 'JSON', ...);",
    "CREATE AS": "CREATE STREAM|TABLE name [WITH (...)] AS SELECT ... EMIT CHANGES;",
    "CREATE TYPE": "CREATE TYPE [IF NOT EXISTS] name AS type;",
    "ALTER": "ALTER STREAM|TABLE name ADD COLUMN column type, ...;",
    "DROP": "DROP STREAM|TABLE|TYPE [IF EXISTS] name [DELETE TOPIC];",
    "INSERT": "INSERT INTO name [(column, ...)] VALUES (value, ...);\nINSERT INTO name SELECT ...;",
    "SELECT": "SELECT item [AS alias], ... FROM source [alias]\n"
    "  [[INNER|LEFT|RIGHT|FULL] JOIN source [WITHIN ...] ON condition]\n"
    "  [WINDOW TUMBLING|HOPPING|SESSION (...)] [WHERE condition] [GROUP BY ...] [PARTITION BY ...] [HAVING condition]\n"
    "  [ORDER BY ...] [EMIT CHANGES|FINAL] [LIMIT n];\n"
    "Without EMIT, it reads the current tables; with EMIT, it returns rows until Ctrl-C.",
    "SHOW": "SHOW|LIST STREAMS|TABLES|[ALL] TOPICS|QUERIES|FUNCTIONS|TYPES|VARIABLES|PROPERTIES [EXTENDED];",
    "DESCRIBE": "DESCRIBE name [EXTENDED];\nDESCRIBE FUNCTION name;",
    "EXPLAIN": "EXPLAIN statement|query_id;",
    "PRINT": "PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n];",
    "TERMINATE": "TERMINATE|PAUSE|RESUME query_id|ALL;",
    "SET": "SET 'property' = 'value';\nUNSET 'property';\nfor example SET 'auto.offset.reset' = 'latest';",
    "DEFINE": "DEFINE name = 'value';\nUNDEFINE name;\nlater statements can use ${name}.",
    "RUN SCRIPT": "RUN SCRIPT 'file.sql';",
    "ASSERT": "ASSERT [NOT EXISTS] TOPIC name [WITH (PARTITIONS = n)] [TIMEOUT n SECONDS];",
}
"""Syntax by the words that `help` accepts."""

COMMANDS: Final = {
    "help [statement]": "show this help, or the syntax of a statement",
    "output json|table": "set the output format",
    "clear": "clear the screen",
    "exit": "quit; Ctrl-D does the same",
}


def print_help(about: str) -> None:
    out = console()
    wanted = about.strip().rstrip(";").upper()
    if not wanted:
        _print_overview()
        return
    found = [name for name in FORMS if name.startswith(wanted) or wanted in FORMS[name].split(maxsplit=1)[0].split("|")]
    if not found:
        found = difflib.get_close_matches(wanted, FORMS, n=1)
    if not found:
        out.print(f"no help for {wanted}; topics: {', '.join(FORMS)}", markup=False)
    for name in found:
        out.print(FORMS[name], markup=False)


def _print_overview() -> None:
    out = console()
    out.print("[bold]Statements[/] end with ;")
    for name, form in FORMS.items():
        out.print(f"  {name.ljust(14)} {form.splitlines()[0].strip()}", markup=False)
    out.print("[bold]Commands[/] of this prompt")
    for command, text in COMMANDS.items():
        out.print(f"  {command.ljust(20)} {text}", markup=False)
    out.print("[bold]Keys[/]  Tab completes, Enter after ; executes, Ctrl-C discards the input or stops a push query")
    out.print("SHOW FUNCTIONS; and DESCRIBE FUNCTION name; describe functions.", markup=False)


STYLE = Style.from_dict(
    {
        "sql.keyword": "bold ansiblue",
        "sql.type": "ansicyan",
        "sql.function": "ansimagenta",
        "sql.string": "ansigreen",
        "sql.number": "ansiyellow",
        "sql.comment": "italic ansibrightblack",
        "sql.variable": "bold ansiyellow",
        "prompt": "bold",
        "prompt.more": "ansibrightblack",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)

_STYLED = {"string", "number", "comment", "variable"}


class SqlLexer(Lexer):
    """Colour words by their role, as far as it is known before the statement is complete."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = list(split_lines(coloured(document.text)))

        def line(number: int) -> StyleAndTextTuples:
            return lines[number] if number < len(lines) else []

        return line


def coloured(text: str) -> StyleAndTextTuples:
    found = list(pieces(text))
    rendered: StyleAndTextTuples = []
    for at, piece in enumerate(found):
        style = ""
        if piece.kind in _STYLED:
            style = f"class:sql.{piece.kind}"
        elif piece.kind == "word":
            called = at + 1 < len(found) and found[at + 1].text == "("
            style = _style_of_word(piece.name, called=called)
        rendered.append((style, piece.text))
    return rendered


def _style_of_word(word: str, *, called: bool) -> str:
    if word in TYPES:
        return "class:sql.type"
    if word in KEYWORDS:
        return "class:sql.keyword"
    return "class:sql.function" if called else ""
