"""Patterns as text: `small{3,} big`, in the syntax of SQL's row patterns."""

from __future__ import annotations

import re

from potok.topology.patterns.errors import PatternSyntaxError
from potok.topology.patterns.tree import Choice, Gap, Loop, Part, Permute, Repeat, Sequence, Take, Tree

_TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<bounds>\{\s*\d*\s*(?:,\s*\d*\s*)?\})|(?P<mark>[()|*+?,]))")
_BOUNDS = re.compile(r"\{\s*(\d*)\s*(?:(,)\s*(\d*)\s*)?\}")
_SIMPLE = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_HINT = (
    "write variables, (groups), a | b, PERMUTE(a, b) and the quantifiers * + ? {2} {2,} {2,4}, each with ? if reluctant"
)


class _Parser:
    def __init__(self, text: str, names: frozenset[str]) -> None:
        self._text, self._names = text, names
        self._tokens: list[tuple[str, str, int]] = []
        position = 0
        while position < len(text.rstrip()):
            found = _TOKEN.match(text, position)
            if found is None:
                while text[position].isspace():
                    position += 1
                raise PatternSyntaxError(f"unexpected {text[position]!r}", text, position, _HINT)
            kind = found.lastgroup or ""
            self._tokens.append((kind, found[kind], found.start(kind)))
            position = found.end()
        self._at = 0

    def parse(self) -> Tree:
        tree = self._choice()
        if self._at < len(self._tokens):
            raise self._unexpected()
        return tree

    def _peek(self, *marks: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at][1] in marks

    def _unexpected(self) -> PatternSyntaxError:
        if self._at == len(self._tokens):
            return PatternSyntaxError("unexpected end of the pattern", self._text, len(self._text), _HINT)
        _, token, position = self._tokens[self._at]
        return PatternSyntaxError(f"unexpected {token!r}", self._text, position, _HINT)

    def _choice(self) -> Tree:
        options = [self._sequence()]
        while self._peek("|"):
            self._at += 1
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Tree:
        nodes = [self._quantified()]
        while self._at < len(self._tokens) and not self._peek("|", ")", ","):
            nodes.append(self._quantified())
        return nodes[0] if len(nodes) == 1 else Sequence(tuple(Part(Gap.STRICT, node) for node in nodes))

    def _quantified(self) -> Tree:
        node = self._primary()
        if self._at == len(self._tokens):
            return node
        kind, token, position = self._tokens[self._at]
        if token in _SIMPLE:
            bounds: tuple[int, int | None] = _SIMPLE[token]
        elif kind == "bounds":
            bounds = self._bounds(token, position)
        else:
            return node
        self._at += 1
        loop = Loop.GREEDY
        if self._peek("?"):
            self._at += 1
            loop = Loop.RELUCTANT
        if self._peek(*_SIMPLE) or (self._at < len(self._tokens) and self._tokens[self._at][0] == "bounds"):
            raise self._unexpected()
        least, most = bounds
        return Repeat(node, max(least, 1), most, Gap.STRICT, loop, optional=least == 0)

    def _bounds(self, token: str, position: int) -> tuple[int, int | None]:
        found = _BOUNDS.fullmatch(token)
        assert found is not None
        low, comma, high = found.groups()
        least = int(low) if low else 0
        most = None if comma and not high else int(high) if comma else least
        if not (low or comma) or (most is not None and (most < least or most == 0)):
            raise PatternSyntaxError(f"{token} cannot match", self._text, position, "write {2}, {2,} or {2,4}")
        return least, most

    def _primary(self) -> Tree:
        if self._at == len(self._tokens):
            raise self._unexpected()
        kind, token, position = self._tokens[self._at]
        if kind == "name":
            self._at += 1
            if token.upper() == "PERMUTE" and self._peek("("):
                return self._permute(position)
            if token not in self._names:
                known = ", ".join(f'"{name}"' for name in sorted(self._names)) or "none"
                hint = f"defined are: {known}; pass {token}=lambda e: ..."
                raise PatternSyntaxError(f'the variable "{token}" is not defined', self._text, position, hint)
            return Take(token)
        if token != "(":
            raise self._unexpected()
        self._at += 1
        tree = self._choice()
        self._close(position)
        return tree

    def _permute(self, position: int) -> Tree:
        start, options = self._at, []
        while self._peek(",") or self._at == start:
            self._at += 1
            options.append(self._choice())
        self._close(self._tokens[start][2])
        if not 2 <= len(options) <= 6:
            raise PatternSyntaxError("PERMUTE takes two to six patterns", self._text, position, "write PERMUTE(a, b)")
        return Permute(tuple(options), Gap.STRICT)

    def _close(self, opened: int) -> None:
        if self._at == len(self._tokens):
            raise PatternSyntaxError("this parenthesis is not closed", self._text, opened, "add )")
        if not self._peek(")"):
            raise self._unexpected()
        self._at += 1


def parse(text: str, names: frozenset[str]) -> Tree:
    """Return the tree of a pattern over these variables."""
    return _Parser(text, names).parse()
