"""Regular expressions as Java writes them, compiled by `regex`: it knows what Python's `re` knows, and can give up.

What the two share is passed on; what Java has besides, or means otherwise, is written out: line ends other than \\n,
named groups, \\p{..}, \\h, \\R, \\Q..\\E, nested and intersected classes, flags in the middle. What cannot be written
in Python (\\G, \\X, scripts and blocks of Unicode) is refused with a `JavaRegexError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import regex

from potok.compat.java.char_classes import SETS, VERTICAL, JavaRegexError, literal
from potok.compat.java.regex_syntax import Reading
from potok.compat.java.time_limit import time_left

_ENDS: Final = r"\n\r\x85\u2028\u2029"
_WITHIN: Final = r"(?<!\r(?=\n))"
"""Not between the two characters of one line end."""
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{(\d+)(?:,(\d*))?\})[?+]?")
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_NAME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9]*)>")
_PLAIN_GROUPS: Final = ("(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!")


LONGEST_PATTERN: Final = 20_000
MOST_WEIGHT: Final = 100_000
"""Limit for a compiled expression: `regex` expands a repeated group into as many copies as its minimum, plus one."""
GROUP_WEIGHT: Final = 10
DEEPEST: Final = 100
MOST_STEPS: Final = 4 << 20
"""Limit for the length of a text times the number of groups, which a search may keep for each character."""


class JavaPattern:
    """An expression, ready for use. A search that takes too long raises `JavaRegexError`."""

    def __init__(self, pattern: str, found: Any) -> None:
        self._pattern, self._found = pattern, found
        self.groups: int = found.groups
        self.groupindex: dict[str, int] = dict(found.groupindex)

    def search(self, text: str, at: int = 0) -> re.Match[str] | None:
        return self._in_time(self._found.search, text, at)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._in_time(self._found.fullmatch, text, 0)

    def _in_time(self, look: Any, text: str, at: int) -> re.Match[str] | None:
        if len(text) * (1 + self.groups) > MOST_STEPS:
            raise JavaRegexError(f"a string of {len(text):,} characters is too long for '{self._pattern[:200]}'")
        try:
            found: re.Match[str] | None = look(text, at, timeout=time_left())
        except MemoryError:
            raise JavaRegexError(f"'{self._pattern[:200]}' takes too much memory") from None
        except TimeoutError:
            raise JavaRegexError(f"'{self._pattern}' takes too long with a text of {len(text)} characters") from None
        return found


def compiled(pattern: str) -> JavaPattern:
    """The pattern, ready for use; patterns are remembered, and so is what is wrong with one."""
    if len(pattern) > LONGEST_PATTERN:
        raise JavaRegexError(f"a regular expression has at most {LONGEST_PATTERN:,} characters, not {len(pattern):,}")
    found = _outcome(pattern)
    if isinstance(found, JavaRegexError):
        raise JavaRegexError(*found.args)
    return found


@lru_cache(maxsize=256)
def _outcome(pattern: str) -> JavaPattern | JavaRegexError:
    try:
        translation = _Translation(pattern)
        text = translation.text()
        # What `regex` has beyond `re`, such as expressions of any length behind (?<=, is not Java's either.
        re.compile(text, re.ASCII)
        # Which letters are the same in any case is one and the same for the whole of an expression here.
        return JavaPattern(pattern, regex.compile(text, regex.UNICODE if translation.folds_all else regex.ASCII))
    except JavaRegexError as error:
        return error
    except (re.error, regex.error, OverflowError, RecursionError, MemoryError) as error:
        return JavaRegexError(f"'{pattern}' is not a regular expression that can be used here: {error}")


def matches(expression: JavaPattern, text: str) -> Iterator[re.Match[str]]:
    """One match after the other. After an empty one the search continues at the next character: Python would look for a
    longer one at the same place first."""
    at = 0
    while at <= len(text) and (found := expression.search(text, at)):
        yield found
        at = found.end() + (found.start() == found.end())


def _copies(quantifier: re.Match[str]) -> int:
    """Return how many copies of a group a quantifier adds."""
    least = int(quantifier[1]) if quantifier[1] else 1 if quantifier[0].startswith("+") else 0
    return min(least, MOST_WEIGHT) + (1 if quantifier[2] != "" or not quantifier[1] else 0)


class _Translation(Reading):
    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self._groups = 0
        self._depth = 0
        self.weight = 0
        """Estimate the size of the compiled expression."""
        self.folds_all = False
        """Whether letters beyond ASCII are the same in any case."""

    def text(self) -> str:
        found = self._branches()
        if self._at < len(self._pattern):
            raise self._wrong("there is a ) without its (")
        return found

    def _branches(self) -> str:
        """Up to the ) of the group, or the end. Flags that are set in the middle hold for the rest of the group: that
        becomes a group of its own, closed and opened again at each |."""
        outside, opened, parts, bare = self._flags, list[str](), list[str](), True
        last = 0
        while self._at < len(self._pattern) and self._pattern[self._at] != ")":
            if self._skipped():
                continue
            if self._pattern[self._at] == "|":
                self._at += 1
                parts.append(")" * len(opened) + "|" + "".join(opened))
                bare = True
                continue
            quantifier = _QUANTIFIER.match(self._pattern, self._at)
            if quantifier or self._pattern[self._at] == "{":
                if quantifier is None or bare:
                    raise self._wrong(f"there is nothing to repeat before {self._pattern[self._at]}")
                parts.append(quantifier[0])
                self._at = quantifier.end()
                self._weigh(last * _copies(quantifier))
                continue
            flags = _FLAGS.match(self._pattern, self._at)
            if flags and flags[3] == ")":
                self._at = flags.end()
                opened.append(self._set_flags(flags))
                parts.append(opened[-1])
            else:
                before = self.weight
                parts.append(self._atom())
                self._weigh(1 + len(parts[-1]) // 16 if self.weight == before else GROUP_WEIGHT)
                # A single character is repeated without copies.
                last, bare = self.weight - before if parts[-1].startswith("(") else 0, False
        self._flags = outside
        return "".join(parts) + ")" * len(opened)

    def _weigh(self, more: int) -> None:
        self.weight += more
        if self.weight > MOST_WEIGHT:
            raise self._wrong("it has too many nested repetitions")

    def _skipped(self) -> bool:
        """With the flag x, white space means nothing, and # begins a comment."""
        if "x" not in self._flags or self._pattern[self._at] not in " \t\n\x0b\f\r#":
            return False
        if self._pattern[self._at] == "#":
            end = re.compile(f"[{_ENDS}]").search(self._pattern, self._at)
            self._at = end.start() if end else len(self._pattern)
        else:
            self._at += 1
        return True

    def _set_flags(self, found: re.Match[str]) -> str:
        on, off = set(found[1]), set(found[2] or "")
        if unknown := (on | off) - set("imsdux"):
            raise self._wrong(f"the flag {''.join(sorted(unknown))} is not known here")
        before, self._flags = self._flags, (self._flags | on) - off
        self.folds_all |= {"i", "u"} <= self._flags
        now_on, now_off = self._flags - before, before - self._flags
        given = ("i" if "i" in now_on else "") + ("u" if "u" in now_on else "a" if "u" in now_off else "")
        return f"(?{given}{'-i' if 'i' in now_off else ''}:"

    def _atom(self) -> str:
        sign = self._pattern[self._at]
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._class()
        if sign == "\\":
            return self._escape()
        self._at += 1
        if sign == ".":
            return "(?s:.)" if "s" in self._flags else f"[^{self._line_ends()}]"
        if sign == "^":
            return self._line_start() if "m" in self._flags else r"(?:\A)"
        if sign == "$":
            return self._line_end() if "m" in self._flags else self._last_end()
        return literal(sign)

    def _line_ends(self) -> str:
        return r"\n" if "d" in self._flags else _ENDS

    def _line_start(self) -> str:
        return rf"(?:(?!\Z)(?:\A|(?<=[{self._line_ends()}]){'' if 'd' in self._flags else _WITHIN}))"

    def _line_end(self) -> str:
        return rf"(?:(?=[{self._line_ends()}]){'' if 'd' in self._flags else _WITHIN}|\Z)"

    def _last_end(self) -> str:
        return r"(?=\n?\Z)" if "d" in self._flags else rf"(?:(?=(?:\r\n|[{_ENDS}])?\Z){_WITHIN})"

    def _group(self) -> str:
        start, outside = self._at, self._flags
        flags = _FLAGS.match(self._pattern, start)
        opening = next((o for o in _PLAIN_GROUPS if self._pattern.startswith(o, start)), "")
        if opening:
            self._at += len(opening)
        elif flags:
            self._at = flags.end()
            opening = self._set_flags(flags)
        elif self._pattern.startswith("(?", start):
            name = _NAME.match(self._pattern, start + 3)
            if self._pattern[start + 2 : start + 3] != "<" or name is None:
                raise self._wrong(f"{self._pattern[start : start + 3]} begins no group")
            self._at, self._groups, opening = name.end(), self._groups + 1, f"(?P<{name[1]}>"
        else:
            self._at, self._groups, opening = start + 1, self._groups + 1, "("
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(f"it has more than {DEEPEST} nested groups")
        inside = self._branches()
        self._depth -= 1
        if self._at >= len(self._pattern):
            raise self._wrong("there is a ( without its )")
        self._at += 1
        self._flags = outside
        return opening + inside + ")"

    def _escape(self) -> str:
        """A backslash and what belongs to it, outside a class."""
        sign = self._pattern[self._at + 1 : self._at + 2]
        if sign == "Q":
            return "".join(map(literal, self._quoted()))
        if sign in SETS:
            self._at += 2
            return SETS[sign]
        if sign in ("p", "P"):
            return f"[{'^' if self._negative() else ''}{self._property()}]"
        if sign == "k":
            name = _NAME.match(self._pattern, self._at + 3)
            if name is None or self._pattern[self._at + 2] != "<":
                raise self._wrong("\\k takes the name of a group: \\k<name>")
            self._at = name.end()
            return f"(?P={name[1]})"
        if sign and sign in "123456789":
            return self._back_reference()
        if sign in ("b", "B", "A", "Z", "z", "R"):
            return self._anchor(sign)
        return literal(self._character())

    def _anchor(self, sign: str) -> str:
        self._at += 2
        if sign == "b" and self._pattern.startswith("{", self._at):
            raise self._wrong("\\b{g} is not known here")
        # Words end as Unicode has it, although \\w is ASCII. Python has no \\B in an empty text, Java has one.
        anchors = {
            "A": r"(?:\A)",
            "B": r"(?!(?u:\b))",
            "R": rf"(?:\r\n|[{VERTICAL}])",
            "Z": self._last_end(),
            "b": r"(?u:\b)",
            "z": r"(?:\Z)",
        }
        return anchors[sign]

    def _back_reference(self) -> str:
        """As many digits as there are groups for so far; a group that comes later, or never, matches nothing."""
        end = self._at + 2
        while end < len(self._pattern) and self._pattern[end].isdigit():
            if int(self._pattern[self._at + 1 : end + 1]) > self._groups:
                break
            end += 1
        number = int(self._pattern[self._at + 1 : end])
        self._at = end
        return f"(?:\\{number})" if number <= self._groups else "(?!)"
