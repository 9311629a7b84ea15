"""Reading a regular expression of Java: single characters however they are written, and classes in brackets."""

from __future__ import annotations

import re
from typing import Final

from potok.compat.java.char_classes import SETS, JavaRegexError, literal, property_set

_CODES: Final = (
    re.compile(r"x\{([0-9A-Fa-f]{1,6})\}"),
    re.compile(r"x([0-9A-Fa-f]{2})"),
    re.compile(r"u([0-9A-Fa-f]{4})"),
)
_OCTAL: Final = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_SIGNS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


class Reading:
    """A place in a pattern, moved on by everything that reads."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._nested = 0
        self._flags: frozenset[str] = frozenset()

    def _quoted(self) -> str:
        end = self._pattern.find("\\E", self._at)
        end = len(self._pattern) if end < 0 else end
        found = self._pattern[self._at + 2 : end]
        self._at = end + 2 if end < len(self._pattern) else end
        return found

    def _property(self) -> str:
        """What \\p{..} or \\P{..} stands for, without the brackets of a class."""
        end = self._at + 3
        if self._pattern.startswith("{", self._at + 2):
            end = self._pattern.find("}", self._at) + 1
            if end == 0:
                raise self._wrong("there is a { without its }")
        name = self._pattern[self._at + 2 : end].strip("{}")
        self._at = end
        return property_set(name, "i" in self._flags)

    def _negative(self) -> bool:
        return self._pattern[self._at + 1] == "P"

    def _character(self) -> str:
        """The character at this position, plain or escaped."""
        if self._pattern[self._at] != "\\":
            self._at += 1
            return self._pattern[self._at - 1]
        sign = self._pattern[self._at + 1 : self._at + 2]
        for code in (*_CODES, _OCTAL):
            if found := code.match(self._pattern, self._at + 1):
                self._at = found.end()
                return self._pair(int(found[1], 8 if code is _OCTAL else 16))
        if sign == "c" and self._at + 2 < len(self._pattern):
            self._at += 3
            return chr(ord(self._pattern[self._at - 1]) ^ 64)
        if not sign or (sign.isascii() and sign.isalnum() and sign not in _SIGNS):
            raise self._wrong(f"\\{sign} is not known here")
        self._at += 2
        return _SIGNS.get(sign, sign)

    def _pair(self, code: int) -> str:
        """Two escapes may be one character: \\uD83D\\uDE00."""
        low = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})").match(self._pattern, self._at)
        if 0xD800 <= code < 0xDC00 and low:
            self._at = low.end()
            return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00)
        if code > 0x10FFFF:
            raise self._wrong(f"{code:x} is not a code point")
        return chr(code)

    def _class(self) -> str:
        """A class in brackets as something that matches one character."""
        self._nested += 1
        if self._nested > 50:
            raise self._wrong("it has more than 50 nested [")
        self._at += 1
        negated = self._pattern.startswith("^", self._at)
        self._at += negated
        operands = [self._union()]
        while self._pattern.startswith("&&", self._at):
            self._at += 2
            operands.append(self._union(first=False))
        if self._at >= len(self._pattern):
            raise self._wrong("there is a [ without its ]")
        self._at += 1
        self._nested -= 1
        found = [operand for operand in operands if any(operand)]
        if not found:
            raise self._wrong("there is nothing in the brackets")
        if len(found) == 1 and not found[0][1]:
            return f"[{'^' if negated else ''}{found[0][0]}]"
        whole = [_either(items, nested) for items, nested in found]
        both = "".join(f"(?={operand})" for operand in whole[:-1]) + whole[-1]
        return f"(?:(?!{both})(?s:.))" if negated else f"(?:{both})"

    def _union(self, *, first: bool = True) -> tuple[str, list[str]]:
        """Up to && or ]: the characters and ranges in brackets, and classes with brackets of their own."""
        items, nested = list[str](), list[str]()
        while self._at < len(self._pattern) and not self._pattern.startswith("&&", self._at):
            sign = self._pattern[self._at]
            if sign == "]" and (items or nested or not first):
                break
            if "x" in self._flags and sign in " \t\n\x0b\f\r":
                self._at += 1
            elif sign == "[":
                nested.append(self._class())
            elif sign == "\\":
                self._escape_in_class(items, nested)
            else:
                items.append(self._range())
        return "".join(items), nested

    def _escape_in_class(self, items: list[str], nested: list[str]) -> None:
        sign = self._pattern[self._at + 1 : self._at + 2]
        if sign == "Q":
            items.extend(map(literal, self._quoted()))
        elif sign in ("p", "P"):
            negative = self._negative()
            found = self._property()
            if negative:
                nested.append(f"[^{found}]")
            else:
                items.append(found)
        elif sign in SETS:
            self._at += 2
            if sign.isupper():
                nested.append(SETS[sign])
            else:
                items.append(SETS[sign][1:-1])
        else:
            items.append(self._range())

    def _range(self) -> str:
        first = self._character()
        after = self._pattern[self._at + 1 : self._at + 2]
        if not self._pattern.startswith("-", self._at) or after in ("", "]", "["):
            return literal(first)
        self._at += 1
        last = self._character()
        if last < first:
            raise self._wrong(f"{first}-{last} is not a range")
        return f"{literal(first)}-{literal(last)}"

    def _wrong(self, why: str) -> JavaRegexError:
        return JavaRegexError(f"'{self._pattern}' is not a regular expression that can be used here: {why}")


def _either(items: str, nested: list[str]) -> str:
    found = ([f"[{items}]"] if items else []) + nested
    return found[0] if len(found) == 1 else f"(?:{'|'.join(found)})"
