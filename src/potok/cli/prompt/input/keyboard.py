"""The interactive prompt: multi-line statements with completion, highlighting and history."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import has_completions, is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import clear

from potok.cli.output import note, print_error
from potok.cli.prompt.display import Drawn, Objects
from potok.cli.prompt.help import print_help
from potok.cli.prompt.input.highlight import STYLE, SqlLexer
from potok.cli.prompt.input.suggestions import OWN_COMMANDS, suggestions
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
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "potok"
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = state / "sql-history"
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
