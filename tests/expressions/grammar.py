"""Random lambdas as source text, typed so that most of them mean something."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

LIMIT_INT = 7
LIMIT_FLOAT = 2.5
BASE = datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=UTC)
DAY = date(2024, 2, 29)
DECIMAL = Decimal("1.50")
NOON = time(12)

INTS = (
    "v['i']",
    "v.j",
    "v.i",
    "v['address']['zip']",
    "v.ints[0]",
    "v.ints[-1]",
    "v['ints'][2]",
    "v.m['a']",
    "v.m.get('b')",
    "v.m.get('b', 5)",
    "v.people[0].age",
    "v.at.hour",
    "v.at.microsecond",
    "v.day.year",
    "v.day.weekday()",
    "v.at.isoweekday()",
    "v.s.count('a')",
    "length(v.s)",
    "length(v.words)",
    "length(v.raw)",
)
FLOATS = ("v['f']", "v.g", "v.f", "v.w['a']", "v.w.get('a', 0)", "(v.at - BASE).total_seconds()", "coalesce(v.f, 3)")
TEXTS = ("k", "v['s']", "v.t", "v.address.city", "v.words[0]", "v.words[-2]", "v.people[-1]['name']")
BOOLS = (
    "v.b",
    "v['c']",
    "isin(v.i, [0, 1, 7.0, None])",
    "isin(v.f, (0, 1.5, 2**53 + 1))",
    "isin(v.s, {'', 'a', 'é', 1})",
    "contains(v.words, 'a')",
    "contains(v.ints, 1)",
    "v.d > 1",
    "v.d == DECIMAL",
    "v.at >= BASE",
    "v.day < DAY",
    "v.hour < NOON",
    "NOON == v.hour",
    "v.raw == b'a'",
    "is_null(v.address)",
    "is_null(v.people[0].name)",
    "v.s == None",
    "None != v.i",
    "isin(v.b, [1])",
    "isin(v.day, (DAY, None))",
    "not_(v.ints)",
    "not_(v.m)",
)

INT_CONSTANTS = ("0", "1", "-1", "2", "10", "LIMIT_INT", str(2**53), str(2**53 + 1), str(2**62), str(-(2**63)))
FLOAT_CONSTANTS = ("0.0", "1.5", "-2.0", "1e300", "0.1", "LIMIT_FLOAT", "9007199254740993.0")
TEXT_CONSTANTS = ("''", "'a'", "'ab'", "'é'", "'ß'", "' '", "','")

METHODS = (
    "upper()",
    "lower()",
    "strip()",
    "lstrip()",
    "rstrip('a ')",
    "title()",
    "capitalize()",
    "swapcase()",
    "replace('a', 'ß')",
    "replace('a', '', 1)",
    "replace('é', 'e', -1)",
    "split(',')[0]",
    "split()[-1]",
    "split('a', maxsplit=1)[1]",
    "strip('')",
)
PREDICATES = (
    "startswith('a')",
    "endswith(('b', 'é'))",
    "isdigit()",
    "isalpha()",
    "isalnum()",
    "islower()",
    "isupper()",
)
WHOLE = ("v", "v.address", "v['people']", "v.m", "v.s.split()", "v.s.split(',', 1)", "k", "v.words", "v.at", "v.d")


class Grammar:
    """Writes expressions of a kind, by choices that Hypothesis draws and can shrink."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def pick(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def ints(self, depth: int) -> str:
        if depth == 0:
            return str(self.pick(*INTS))
        shape = self.pick(*(["leaf"] * 2 + ["binary"] * 4 + ["constant"] * 3 + ["unary", "power", "bool", "choice"]))
        if shape == "power":
            return f"({self.ints(depth - 1)} ** {self.pick(0, 1, 2, 3, 7)})"
        if shape == "bool":
            return f"({self.ints(depth - 1)} {self.pick('+', '*', '&')} {self.bools(depth - 1)})"
        return self._numbers(shape, depth, self.ints, INT_CONSTANTS, ("+", "-", "*", "//", "%", "&", "|", "^"))

    def floats(self, depth: int) -> str:
        if depth == 0:
            return str(self.pick(*FLOATS))
        shape = self.pick(*(["leaf"] * 2 + ["binary"] * 3 + ["constant"] * 3 + ["unary", "mixed", "mixed", "choice"]))
        if shape == "mixed":
            left, right = self.pick((self.ints, self.floats), (self.floats, self.ints), (self.ints, self.ints))
            return f"({left(depth - 1)} {self.pick('+', '-', '*', '/', '//', '%')} {right(depth - 1)})"
        constants = (*FLOAT_CONSTANTS, *INT_CONSTANTS)
        return self._numbers(shape, depth, self.floats, constants, ("+", "-", "*", "/", "//", "%"))

    def _numbers(self, shape: str, depth: int, kind: Callable[[int], str], constants: Any, ops: Any) -> str:
        match shape:
            case "leaf":
                return kind(0)
            case "unary":
                return self.pick("(-{})", "(+{})", "absolute({})").format(kind(depth - 1))
            case "constant":
                sides = kind(depth - 1), self.pick(*constants)
                left, right = self.pick(sides, sides[::-1])
                return f"({left} {self.pick(*ops)} {right})"
            case "choice":
                return self.choice(depth, kind, constants)
        return f"({kind(depth - 1)} {self.pick(*ops)} {kind(depth - 1)})"

    def choice(self, depth: int, kind: Callable[[int], str], constants: Any) -> str:
        one, other = kind(depth - 1), self.pick(kind(depth - 1), self.pick(*constants), "None")
        name = self.pick("when", "coalesce", "least", "greatest")
        return f"when({self.bools(depth - 1)}, {one}, {other})" if name == "when" else f"{name}({one}, {other})"

    def texts(self, depth: int) -> str:
        if depth == 0:
            return str(self.pick(*TEXTS))
        one = self.texts(depth - 1)
        match self.pick("leaf", "plus", "plus", "method", "method", "slice", "item", "concat", "choice"):
            case "plus":
                left, right = self.pick((one, self.texts(depth - 1)), (one, self.pick(*TEXT_CONSTANTS)))
                return f"({left} + {right})"
            case "method":
                return f"{one}.{self.pick(*METHODS)}"
            case "slice":
                start, stop = (self.pick("", 0, 1, -1, 2, -3, 10) for _ in range(2))
                return f"{one}[{start}:{stop}]"
            case "item":
                return f"{one}[{self.pick(0, 1, -1, -2)}]"
            case "concat":
                return f"concat({one}, {self.pick(*TEXT_CONSTANTS)}, {self.texts(depth - 1)})"
            case "choice":
                return self.choice(depth, self.texts, TEXT_CONSTANTS)
        return one

    def bools(self, depth: int) -> str:
        if depth == 0:
            return f"({self.pick(*BOOLS)})"
        compare = self.pick("==", "!=", "<", "<=", ">", ">=")
        match self.pick("leaf", "number", "number", "number", "text", "apart", "logic", "logic", "not", "other"):
            case "number":
                left, right = (self.pick(self.ints, self.floats)(depth - 1) for _ in range(2))
                return f"({left} {compare} {self.pick(right, *INT_CONSTANTS[:7], *FLOAT_CONSTANTS)})"
            case "text":
                return f"({self.texts(depth - 1)} {compare} {self.pick(self.texts(depth - 1), *TEXT_CONSTANTS)})"
            case "apart":
                return f"({self.texts(depth - 1)} {self.pick('==', '!=')} {self.ints(depth - 1)})"
            case "logic":
                return f"({self.bools(depth - 1)} {self.pick('&', '|', '^', '==', '<')} {self.bools(depth - 1)})"
            case "not":
                kind = self.pick(self.ints, self.floats, self.texts, self.bools)
                return f"{self.pick('not_', 'is_null')}({kind(depth - 1)})"
            case "other":
                return self.pick(
                    f"between({self.ints(depth - 1)}, {self.floats(depth - 1)}, {self.ints(depth - 1)})",
                    f"{self.texts(depth - 1)}.{self.pick(*PREDICATES)}",
                    f"contains({self.texts(depth - 1)}, {self.pick(*TEXT_CONSTANTS)})",
                )
        return self.bools(0)

    def scalar(self, depth: int) -> str:
        return str(self.pick(self.ints, self.floats, self.texts, self.bools)(depth))

    def result(self, depth: int) -> str:
        match self.pick("scalar", "scalar", "scalar", "spread", "replace", "nested", "list", "tuple", "whole"):
            case "spread":
                return f"{{**v, 'x': {self.scalar(depth)}}}"
            case "replace":
                return f"{{**v, 'i': {self.scalar(depth)}, 'y': {self.scalar(1)}}}"
            case "nested":
                return f"{{'a': {self.scalar(depth)}, 'b': {{'c': {self.scalar(1)}}}}}"
            case "list":
                return f"[{self.ints(1)}, {self.ints(1)}]"
            case "tuple":
                return f"(k, {self.scalar(depth)})"
            case "whole":
                return str(self.pick(*WHOLE))
        return self.scalar(depth)


@st.composite
def lambdas(draw: Any) -> str:
    """The source of a lambda of a key and a value."""
    return f"lambda k, v: {Grammar(draw).result(draw(st.sampled_from([1, 2, 3])))}"
