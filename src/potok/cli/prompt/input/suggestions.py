"""Complete the input: keywords, names, columns of the sources in the statement, functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.cli.prompt.input.tokens import FOLLOWERS, IN_QUERIES, KEYWORDS, TYPES, Piece, statement_around
from potok.cli.prompt.targets.target import Names
from potok.sql.formats import FORMATS
from potok.sql.functions.registry import all_functions, users_functions
from potok.sql.syntax.lexer.words import STATEMENTS
from potok.sql.types import quoted, type_name
from potok.sql.with_clause import KEYS

OWN_COMMANDS = ("HELP", "EXIT", "OUTPUT", "CLEAR")
"""Commands of the prompt itself, which need no `;`."""

_READS = ("FROM", "JOIN", "INTO")
_BY_ID = ("TERMINATE", "PAUSE", "RESUME", "EXPLAIN")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text that can replace the last `length` characters before the cursor."""

    text: str
    about: str
    length: int


def suggestions(text: str, cursor: int, names: Names) -> list[Suggestion]:
    before, behind = statement_around(text, cursor)
    typed: Piece | None = None
    if before and before[-1].end >= cursor and before[-1].kind != "symbol":
        typed = before.pop()
    if typed is not None and typed.kind in ("number", "variable"):
        return []
    prefix = "" if typed is None else text[typed.start : cursor]
    alone = not text[: before[0].start if before else cursor - len(prefix)].strip()
    found = _Context(before, [*before, *behind], names, alone=alone).candidates(is_started=bool(prefix))
    small = _is_small(prefix, before)
    return list(_fitting(found, prefix, small=small))


def _fitting(found: Iterable[tuple[str, str]], prefix: str, *, small: bool) -> Iterator[Suggestion]:
    """Return the suggestions that start with the typed word; in lower case if the user writes in lower case."""
    seen: set[str] = set()
    wanted = prefix.upper()
    for text, about in found:
        if text in seen or text.upper() == wanted:
            continue
        bare = text.lstrip("'`\"").upper()
        if text.upper().startswith(wanted) or (wanted and bare.startswith(wanted.lstrip("'`\""))):
            seen.add(text)
            folds = text[:1] not in "'`\""
            yield Suggestion(text.lower() if small and folds else text, about, len(prefix))


def _is_small(prefix: str, before: Sequence[Piece]) -> bool:
    letters = prefix if any(map(str.isalpha, prefix)) else "".join(p.text for p in before[:1])
    return letters.islower()


class _Context:
    """The incomplete statement before the cursor."""

    def __init__(self, before: Sequence[Piece], around: Sequence[Piece], names: Names, *, alone: bool) -> None:
        self._words = [piece.name for piece in before]
        self._before, self._names, self._alone = before, names, alone
        self._sources = dict(_sources_of(around, names))

    def candidates(self, *, is_started: bool) -> Iterator[tuple[str, str]]:
        words = self._words
        last = words[-1] if words else ""
        if not words:
            yield from ((word, "") for word in (*STATEMENTS, *(OWN_COMMANDS if self._alone else ())))
        elif last in (".", "->") and len(words) > 1:
            yield from self._members(last)
        elif last in _READS or self._names_a_source():
            yield from self._source_names()
        elif words[0] in ("PRINT", "ASSERT") and last in ("PRINT", "TOPIC"):
            yield from ((f"'{topic}'", "topic") for topic in self._names.topics)
        elif words[0] in _BY_ID and len(words) == 1:
            yield from ((quoted(query), "query") for query in self._names.queries)
            yield from ((word, "") for word in (("ALL",) if last != "EXPLAIN" else STATEMENTS[:2]))
        elif self._in_with():
            yield from self._options()
        elif last in FOLLOWERS and not (last == "LEFT" and "SELECT" in words and "FROM" not in words):
            yield from ((word, "") for word in FOLLOWERS[last])
        else:
            yield from self._anything(is_started=is_started)

    def _members(self, last: str) -> Iterator[tuple[str, str]]:
        """Suggest columns after `alias.` and fields after `struct->`."""
        if last == ".":
            yield from _columns(self._sources.get(self._words[-2], {}))
            return
        path: list[str] = []
        at = len(self._words) - 1
        while at > 0 and self._words[at] == "->":
            path.insert(0, self._words[at - 1])
            at -= 2
        for columns in self._sources.values():
            found = columns.get(path[0])
            for name in path[1:]:
                found = _field(found, name)
            if found is not None and pa.types.is_struct(found):
                yield from ((quoted(field.name), type_name(field.type)) for field in found)

    def _names_a_source(self) -> bool:
        words = self._words
        if words[0] in ("DROP", "ALTER"):
            return words[-1] in ("STREAM", "TABLE") or words[-2:] == ["IF", "EXISTS"]
        return words[0] == "DESCRIBE" and len(words) == 1

    def _source_names(self) -> Iterator[tuple[str, str]]:
        words = self._words
        wanted = words[1] if words[0] in ("DROP", "ALTER") and len(words) > 1 else ""
        for name, source in self._names.sources.items():
            if wanted in ("", source.kind):
                yield quoted(name), source.kind.lower()
        if words[-1] in ("STREAM", "TABLE") and words[0] == "DROP":
            yield "IF EXISTS", ""
        if words[0] == "DESCRIBE":
            yield from ((word, "") for word in ("FUNCTION", "STREAMS", "TABLES"))

    def _in_with(self) -> bool:
        words = self._words
        opened = max((at for at, word in enumerate(words[:-1]) if (word, words[at + 1]) == ("WITH", "(")), default=None)
        return opened is not None and ")" not in words[opened:]

    def _options(self) -> Iterator[tuple[str, str]]:
        words = self._words
        if words[-1] in ("(", ","):
            yield from ((f"{key} = ", "") for key in KEYS)
        elif words[-1] == "=" and words[-2].endswith("FORMAT") and words[-2] != "TIMESTAMP_FORMAT":
            yield from ((f"'{name}'", "format") for name in FORMATS)
        elif words[-2:] == ["KAFKA_TOPIC", "="]:
            yield from ((f"'{topic}'", "topic") for topic in self._names.topics)

    def _anything(self, *, is_started: bool) -> Iterator[tuple[str, str]]:
        for columns in self._sources.values():
            yield from _columns(columns)
        if self._words[0] in ("CREATE", "ALTER") and "SELECT" not in self._words:
            yield from ((name, "type") for name in sorted(TYPES))
            yield from ((quoted(name), "type") for name in self._names.types)
        if is_started:
            yield from ((quoted(alias), "") for alias in self._sources)
            yield from _functions(bare=self._words[-1] == "FUNCTION")
            yield from ((word, "") for word in IN_QUERIES)


def _functions(*, bare: bool) -> Iterator[tuple[str, str]]:
    for name, function in sorted({**all_functions(), **users_functions()}.items()):
        yield name if bare else f"{name}(", function.overloads[0].signature if function.overloads else ""


def _columns(columns: Mapping[str, pa.DataType]) -> Iterator[tuple[str, str]]:
    return ((quoted(name), type_name(type_)) for name, type_ in columns.items())


def _field(type_: pa.DataType | None, name: str) -> pa.DataType | None:
    if type_ is None or not pa.types.is_struct(type_) or type_.get_field_index(name) < 0:
        return None
    return type_.field(name).type


def _sources_of(around: Sequence[Piece], names: Names) -> Iterator[tuple[str, Mapping[str, pa.DataType]]]:
    """Return the streams and tables of a statement by name and by alias."""
    for at, piece in enumerate(around[:-1]):
        if piece.name not in _READS or piece.kind != "word":
            continue
        source = names.sources.get(around[at + 1].name)
        if source is None:
            continue
        yield around[at + 1].name, source.columns
        rest = [p for p in around[at + 2 : at + 4] if p.name != "AS"]
        if rest and (rest[0].kind == "quoted" or (rest[0].kind == "word" and rest[0].name not in KEYWORDS)):
            yield rest[0].name, source.columns
