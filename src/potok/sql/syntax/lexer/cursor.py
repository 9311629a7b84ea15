"""A cursor over the tokens of one statement, with error messages that say what was expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from potok.sql.errors import SourceLocation, SqlSyntaxError, similar
from potok.sql.syntax.lexer.tokens import Kind, Source, Token
from potok.sql.syntax.lexer.words import RESERVED, UNLIKELY_NAMES

MOST_COLUMNS = 4_096
"""Limit for a source, a SELECT, a struct or a WITH clause."""

PATTERN_SYMBOLS = frozenset(("{", "}", "{-", "-}", "?", "|", "^", "$"))
"""Symbols that only a row pattern has."""

MAX_DEPTH = 40
"""The maximum nesting of parentheses, calls and types: computation recurses as deep as the text."""


class Cursor:
    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else self._tokens[-1]

    @property
    def previous(self) -> Token | None:
        return self._tokens[self._at - 1] if self._at else None

    def take(self) -> Token:
        token = self.peek()
        if token.kind is not Kind.END:
            self._at += 1
        return token

    def mark(self) -> int:
        return self._at

    def rewind(self, mark: int) -> None:
        self._at = mark

    @property
    def done(self) -> bool:
        return self.peek().kind is Kind.END

    def at(self, *words: str, ahead: int = 0) -> bool:
        """Return whether these words come next."""
        tokens = (self.peek(ahead + n) for n in range(len(words)))
        return all(token.kind is Kind.WORD and token.value == word for token, word in zip(tokens, words, strict=True))

    def accept(self, *words: str) -> bool:
        if not self.at(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> Token:
        """Take the words; return the first one."""
        first = self.peek()
        for word in words:
            if not self.accept(word):
                raise self.expected(" ".join(words), near=words)
        return first

    def one_of(self, *words: str) -> str:
        token = self.peek()
        if token.kind is not Kind.WORD or token.value not in words:
            raise self.expected(either(words), near=words)
        return self.take().value

    def at_symbol(self, symbol: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind is Kind.SYMBOL and token.value == symbol

    def holds(self, first: str, second: str) -> bool:
        """Return whether two symbols follow each other anywhere in the statement."""
        pairs = zip(self._tokens, self._tokens[1:], strict=False)
        return any(a.value == first and b.value == second and a.kind is b.kind is Kind.SYMBOL for a, b in pairs)

    def accept_symbol(self, symbol: str) -> bool:
        if not self.at_symbol(symbol):
            return False
        self._at += 1
        return True

    def another(self, items: Sequence[object]) -> bool:
        """Take a comma before another column, if there is one. The number of columns is limited, because names are
        compared pairwise."""
        if not self.accept_symbol(","):
            return False
        if len(items) >= MOST_COLUMNS:
            raise self.error(f"there are more than {MOST_COLUMNS:,} here", hint="split them over several statements")
        return True

    def expect_symbol(self, symbol: str, *, hint: str = "") -> Token:
        if not self.at_symbol(symbol):
            raise self.expected("a comma" if symbol == "," else symbol, hint=hint)
        return self.take()

    def close(self, opening: Token, symbol: str) -> None:
        """Take the token that closes an opening parenthesis or bracket."""
        location = self.source.location(opening.start, opening.end)
        self.expect_symbol(
            symbol, hint=f"it closes the {opening.written} at line {location.line}, column {location.column}"
        )

    def at_name(self, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind is Kind.QUOTED or (token.kind is Kind.WORD and token.value not in RESERVED)

    def name(self, what: str) -> str:
        """Take an identifier, folded to upper case unless it is quoted."""
        token = self.peek()
        if not self.at_name():
            hint = f"{token.written} is a word of SQL: write `{token.value}` to use it as a name"
            likely = token.kind is Kind.WORD and token.value not in UNLIKELY_NAMES
            raise self.expected(what, hint=hint if likely else "")
        if not token.value:
            raise self.error("a name cannot be empty", token)
        return self.take().value

    def string(self, what: str) -> str:
        token = self.peek()
        if token.kind is not Kind.STRING:
            text = token.written if token.kind is Kind.WORD else token.value
            quotable = token.kind in (Kind.WORD, Kind.QUOTED)
            raise self.expected(what, hint=f"write '{text}' in single quotes" if quotable else "")
        return self.take().value

    def integer(self, what: str) -> int:
        token = self.peek()
        if token.kind is not Kind.INTEGER:
            raise self.expected(what)
        return whole_number(self, self.take())

    @contextmanager
    def deeper(self) -> Iterator[bool]:
        """Guard a recursive rule; return whether it is the outermost call."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(
                f"this is nested more than {MAX_DEPTH} deep", hint="compute a part of it in a stream of its own"
            )
        yield self._depth == 1
        self._depth -= 1

    def since(self, first: Token) -> SourceLocation:
        """Return the range from a token to the last one taken."""
        last = self.previous or first
        return self.source.location(first.start, max(first.end, last.end))

    def error(self, message: str, token: Token | None = None, *, hint: str = "") -> SqlSyntaxError:
        token = token or self.peek()
        return SqlSyntaxError(message, hint=hint, location=self.source.location(token.start, token.end))

    def expected(self, what: str, *, near: tuple[str, ...] = (), hint: str = "") -> SqlSyntaxError:
        """Return an error that says what was expected; with `near` words, suggest one that is misspelled here or just
        before."""
        token = self.peek()
        if token.kind is Kind.SYMBOL and token.value in PATTERN_SYMBOLS and not self._has_pattern():
            return self.error(f"unexpected {token.written}", token)
        if not hint and near:
            hint = self._misspelt(near)
        found = "but nothing follows" if token.kind is Kind.END else f"found {token.written}"
        return self.error(f"expected {what}, {found}", token, hint=hint)

    def _has_pattern(self) -> bool:
        return any(token.value == "MATCH_RECOGNIZE" for token in self._tokens)

    def _misspelt(self, near: tuple[str, ...]) -> str:
        token, before = self.peek(), self.previous
        if token.kind is Kind.WORD and (hint := misspelt(token.value, near)):
            return hint
        # A misspelled keyword is parsed as a name, and the error is found at the token after it.
        if before is not None and before.kind is Kind.WORD and before.value not in RESERVED:
            hint = misspelt(before.value, near)
            return hint and f"{before.written}: {hint}"
        return ""


def misspelt(word: str, near: tuple[str, ...]) -> str:
    """Return the keyword that was probably meant. Keywords are few, so they must be more similar than names."""
    if word in near:
        return ""
    found = similar(word, near, 0.7)
    return f"did you mean {found}?" if found else ""


def whole_number(cursor: Cursor, token: Token, *, negative: bool = False) -> int:
    digits = token.value.lstrip("0") or "0"
    value = int(digits) if len(digits) < 20 else 1 << 64
    if value > (1 << 63) - (not negative):
        raise cursor.error("this number is too large for BIGINT", token, hint="write it with a decimal point")
    return -value if negative else value


def either(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
