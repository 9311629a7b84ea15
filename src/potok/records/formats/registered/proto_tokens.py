"""The tokens of Protobuf's schema language."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[+-]?(?:0[xX][0-9A-Fa-f]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|-(?:inf|nan))
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<symbol>[{}()\[\]<>=;:,.\-/])""",
    re.VERBOSE | re.DOTALL,
)


class ProtoSyntaxError(ValueError):
    """Text that is not a schema of Protobuf."""


@dataclass(slots=True)
class Tokens:
    """A cursor over the tokens of a schema."""

    kinds: list[str]
    texts: list[str]
    at: int = 0

    @classmethod
    def of(cls, text: str) -> Tokens:
        kinds, texts, position = [], [], 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                line = text.count("\n", 0, position) + 1
                raise ProtoSyntaxError(f"unexpected {text[position]!r} in line {line}")
            if found.lastgroup is not None:
                kinds.append(found.lastgroup)
                texts.append(found[0])
            position = found.end()
        return cls([*kinds, "end"], [*texts, ""])

    @property
    def text(self) -> str:
        return self.texts[self.at]

    @property
    def kind(self) -> str:
        return self.kinds[self.at]

    def following(self) -> str:
        """Return the token after the next one."""
        return self.texts[self.at + 1] if self.at + 1 < len(self.texts) else ""

    def take(self) -> str:
        found = self.texts[self.at]
        if self.kind == "end":
            raise ProtoSyntaxError("the text ends too early")
        self.at += 1
        return found

    def skips(self, text: str) -> bool:
        """Take a token if it is this one; return whether it was."""
        if self.text != text or self.kind == "text":
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.skips(text):
            raise ProtoSyntaxError(f"expected {text!r}, not {self.text!r}")

    def name(self) -> str:
        if self.kind != "name":
            raise ProtoSyntaxError(f"expected a name, not {self.text!r}")
        return self.take()

    def type_name(self) -> str:
        """Take a name with dots, which may begin with one."""
        found = "." if self.skips(".") else ""
        found += self.name()
        while self.skips("."):
            found += f".{self.name()}"
        return found

    def number(self) -> int:
        if self.kind != "number":
            raise ProtoSyntaxError(f"expected a number, not {self.text!r}")
        text = self.take().lower().lstrip("+")
        try:
            sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
            octal = len(digits) > 1 and digits.startswith("0") and not digits.startswith("0x")
            return sign * int(digits, 8 if octal else 0)
        except ValueError as error:
            raise ProtoSyntaxError(f"{text!r} is not a whole number") from error

    def string(self) -> str:
        if self.kind != "text":
            raise ProtoSyntaxError(f"expected text in quotes, not {self.text!r}")
        found = ""
        while self.kind == "text":
            try:
                found += str(ast.literal_eval(self.take()))
            except (SyntaxError, ValueError) as error:
                raise ProtoSyntaxError("text in quotes has an invalid escape") from error
        return found

    def skip_braces(self) -> None:
        """Take a block in braces, whatever is in it."""
        self.expect("{")
        depth = 1
        while depth:
            if self.kind != "text":
                depth += {"{": 1, "}": -1}.get(self.text, 0)
            self.take()

    def skip_statement(self) -> None:
        """Take everything up to a semicolon."""
        while not self.skips(";"):
            if self.text == "{" and self.kind == "symbol":
                self.skip_braces()
            else:
                self.take()
