"""Errors in statements: what is wrong, where in the text, and what to write instead."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from potok.errors import PotokError


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A range of a script; line and column count from 1."""

    line: int
    column: int
    length: int = 1


LONG_LINE, LONG_TEXT = 400, 4_000
"""Longer lines and messages are truncated."""


MOST_COMPARED = 200
"""Longer names get no suggestions: comparing them takes quadratic time and memory."""


class SqlError(PotokError):
    """A statement that cannot be parsed, checked or executed.

    It is raised with a position; `in_text` adds the line of the script, which the message shows with the wrong part
    underlined.
    """

    def __init__(self, message: str, *, hint: str = "", location: SourceLocation | None = None) -> None:
        super().__init__(_shortened(message), hint=_shortened(hint))
        self.location = location
        self.line_text = ""
        self.skipped = 0
        """How many characters of a long line precede `line_text`."""

    def in_text(self, text: str) -> SqlError:
        """Return the same error with the line that it is about."""
        lines = text.splitlines()
        if self.location is not None and not self.line_text and 0 < self.location.line <= len(lines):
            line = lines[self.location.line - 1]
            self.skipped = 0 if len(line) <= LONG_LINE else max(0, self.location.column - 1 - LONG_LINE // 4)
            # A lone surrogate is shown as one character, so that the underline is aligned.
            self.line_text = line[self.skipped : self.skipped + LONG_LINE].encode("utf-8", "replace").decode()
        return self

    def __str__(self) -> str:
        parts = [self.message]
        if self.location is not None:
            parts[0] = f"line {self.location.line}, column {self.location.column}: {self.message}"
            if self.line_text:
                column = self.location.column - self.skipped
                marks = "^" * max(1, min(self.location.length, len(self.line_text) - column + 1))
                lead = "".join(c if c == "\t" else " " for c in self.line_text[: column - 1])
                parts += [f"  {self.line_text}", f"  {lead}{marks}"]
        if self.hint:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.location, self.line_text, self.skipped)


def _rebuild(
    kind: type[SqlError], message: str, hint: str, location: SourceLocation | None, line: str, skipped: int
) -> SqlError:
    error = kind.__new__(kind)
    SqlError.__init__(error, message, hint=hint, location=location)
    error.line_text, error.skipped = line, skipped
    return error


def _shortened(text: str) -> str:
    """Truncate a text that may quote a value of many megabytes."""
    return text if len(text) <= LONG_TEXT else f"{text[: LONG_TEXT // 2]} ... {text[-LONG_TEXT // 4 :]}"


class SqlSyntaxError(SqlError):
    """Text that cannot be parsed."""


class UnknownName(SqlError):
    """A stream, table, column, field, function, type or variable that does not exist."""


class SqlTypeError(SqlError):
    """An expression whose parts have incompatible types."""


class Refused(SqlError):
    """A valid statement that is not allowed or has no meaning."""


def closest(name: str, known: Iterable[str]) -> str:
    """Return `did you mean X?`, or "" if no name is similar."""
    by_fold = {candidate.upper(): candidate for candidate in itertools.islice(known, 10_000)}
    near = similar(name.upper(), by_fold, 0.6)
    return f"did you mean {by_fold[near]}?" if near else ""


def similar(name: str, known: Iterable[str], cutoff: float) -> str:
    """Return the most similar of some names, or "" if none is, or if the name is absurdly long."""
    if len(name) > MOST_COMPARED:
        return ""
    near = difflib.get_close_matches(name, [each for each in known if len(each) <= MOST_COMPARED], 1, cutoff)
    return near[0] if near else ""
