"""Constructs that must not be traced. They stand apart from the tests because pytest rewrites `assert` there."""

from __future__ import annotations

import functools
import math
import time
import uuid
from collections.abc import Callable
from typing import Any

from potok.expressions.functions import coalesce, isin, when

CHANGING = ["a"]
LOOKUP = {"a": 1}
counter = 0


class Scale:
    factor = 2

    def apply(self, k: Any, v: Any) -> Any:
        return v.i * self.factor

    def __call__(self, k: Any, v: Any) -> Any:
        return v.i


def counting(k: Any, v: Any) -> Any:
    global counter
    counter = counter + 1
    return v.i


def trying(k: Any, v: Any) -> Any:
    try:
        return v.i
    except TypeError:
        return 0


def opening(k: Any, v: Any) -> Any:
    with open("x") as file:
        return file.read() + v.s


def looping(k: Any, v: Any) -> Any:
    while v.b:
        pass
    return v.i


def summing(k: Any, v: Any) -> Any:
    total = 0
    for part in v.ints:
        total = total + part
    return total


def branching(k: Any, v: Any) -> Any:
    if v.b:
        return v.i
    return v.j


def asserting(k: Any, v: Any) -> Any:
    assert v.i > 0
    return v.i


def raising(k: Any, v: Any) -> Any:
    raise ValueError(v.s)


def changing(k: Any, v: Any) -> Any:
    v["i"] = 1
    return v


def setting(k: Any, v: Any) -> Any:
    v.i = 1
    return v


def deleting(k: Any, v: Any) -> Any:
    del v["i"]
    return v


def importing(k: Any, v: Any) -> Any:
    import random

    return random.random() + v.i


def defining(k: Any, v: Any) -> Any:
    def inner() -> Any:
        return v.i

    return inner()


def printing(k: Any, v: Any) -> Any:
    print(v.i)
    return v.i


def dropping(k: Any, v: Any) -> Any:
    v.i / v.j
    return v.i


def dropping_a_name(k: Any, v: Any) -> Any:
    ratio = v.i / v.j  # noqa: F841
    return v.i


def unpacking(k: Any, v: Any) -> Any:
    first, second = v.ints
    return first + second


def matching(k: Any, v: Any) -> Any:
    match v:
        case {"i": i}:
            return i
    return 0


def yielding(k: Any, v: Any) -> Any:
    yield v.i


async def waiting(k: Any, v: Any) -> Any:
    return v.i


def collecting(*args: Any) -> Any:
    return args[1].i


def counting_up() -> Callable[..., Any]:
    seen = 0

    def count(k: Any, v: Any) -> Any:
        nonlocal seen
        seen = seen + 1
        return v.i

    return count


def closing_over_a_list() -> Callable[..., Any]:
    wanted = ["a"]
    return lambda k, v: isin(v.s, wanted)


CONSTRUCTS: dict[str, tuple[Callable[..., Any], str]] = {
    "is None": (lambda k, v: v.i is None, "`is`"),
    "is not None": (lambda k, v: v.i is not None, "`is`"),
    "isinstance": (lambda k, v: isinstance(v.i, int), "isinstance"),
    "type": (lambda k, v: type(v.i) == int, "type"),  # noqa: E721
    "hasattr": (lambda k, v: hasattr(v, "i"), "hasattr"),
    "f-string": (lambda k, v: f"{v.s}!", "formats"),
    "f-string of one value": (lambda k, v: f"{v.s}", "formats"),
    "f-string with a width": (lambda k, v: f"{v.i:>10}", "formats"),
    "f-string with repr": (lambda k, v: f"{v.s!r}", "formats"),
    "percent": (lambda k, v: "%s" % v.s, "formats"),  # noqa: UP031
    "percent without a place": (lambda k, v: "none" % v.s, "formats"),  # noqa: F507, UP031
    "format method": (lambda k, v: "{}".format(v.s), "attribute format"),  # noqa: UP032
    "join": (lambda k, v: "-".join([v.s, v.t]), "attribute join"),
    "time.time": (lambda k, v: v.f > time.time(), "time"),
    "uuid4": (lambda k, v: {**v, "id": str(uuid.uuid4())}, "built-in str"),
    "uuid4 hex": (lambda k, v: {**v, "id": uuid.uuid4().hex}, "uuid"),
    "math": (lambda k, v: math.sqrt(v.f), "math"),
    "and": (lambda k, v: v.b and v.c, "`and`"),
    "or": (lambda k, v: v.b or v.c, "`or`"),
    "comparisons with and": (lambda k, v: v.i > 1 and v.i < 5, "`and`"),
    "not": (lambda k, v: not v.b, "`not`"),
    "in": (lambda k, v: v.s in ("a", "b"), "`in`"),
    "not in": (lambda k, v: v.s not in ("a", "b"), "`in`"),
    "in a field": (lambda k, v: "a" in v.words, "`in`"),
    "chained comparison": (lambda k, v: 1 < v.i < 5, "chains"),
    "chained equality": (lambda k, v: v.i == v.j == 1, "chains"),
    "conditional expression": (lambda k, v: 1 if v.b else 2, "`if`"),
    "if": (branching, "`if`"),
    "assert": (asserting, "assert"),
    "while": (looping, "loop"),
    "for": (summing, "loop"),
    "list comprehension": (lambda k, v: [x + 1 for x in v.ints], "comprehension"),
    "dict comprehension": (lambda k, v: {x: x + "!" for x in v.words}, "comprehension"),
    "set comprehension": (lambda k, v: {x for x in v.words}, "comprehension"),  # noqa: C416
    "generator expression": (lambda k, v: sum(x for x in v.ints), "comprehension"),
    "nested lambda": (lambda k, v: (lambda x: x)(v.i), "lambda"),
    "nested function": (defining, "defines inner"),
    "walrus": (lambda k, v: (x := v.i) + x, "assigns"),
    "try": (trying, "try"),
    "with": (opening, "with"),
    "raise": (raising, "raises"),
    "import": (importing, "imports"),
    "match": (matching, ""),
    "global": (counting, "outside itself"),
    "nonlocal": (counting_up(), "outside itself"),
    "item assignment": (changing, "changes"),
    "attribute assignment": (setting, "changes"),
    "del": (deleting, "changes"),
    "statement without effect": (dropping, "discards a computed value"),
    "name that is never read": (dropping_a_name, "does not return it"),
    "item of a list that is not taken": (lambda k, v: [v.i / v.j, v.i][1], "does not return it"),
    "value that is replaced": (lambda k, v: {"x": v.i / v.j} | {"x": v.i}, "does not return it"),
    "unpacking": (unpacking, "unpacks"),
    "print": (printing, "print"),
    "len": (lambda k, v: len(v.s), "built-in len; see potok.functions.length"),
    "abs": (lambda k, v: abs(v.i), "built-in abs"),
    "round": (lambda k, v: round(v.f), "round"),
    "str": (lambda k, v: str(v.i), "str"),
    "int": (lambda k, v: int(v.f), "int"),
    "float": (lambda k, v: float(v.i), "float"),
    "bool": (lambda k, v: bool(v.i), "bool"),
    "min": (lambda k, v: min(v.i, v.j), "min"),
    "max": (lambda k, v: max(v.i, v.j), "max"),
    "sum": (lambda k, v: sum(v.ints), "sum"),
    "sorted": (lambda k, v: sorted(v.ints), "sorted"),
    "dict": (lambda k, v: dict(v), "dict"),
    "star in a call": (lambda k, v: coalesce(*v.ints), "*"),
    "star in a list": (lambda k, v: [*v.ints], "goes through"),
    "double star in a call": (lambda k, v: when(**v), "*"),
    "a list that could change": (lambda k, v: isin(v.s, CHANGING), "make it a tuple"),
    "a list closed over": (closing_over_a_list(), "make it a tuple"),
    "a dict": (lambda k, v: LOOKUP[v.s], "LOOKUP"),
    "a name that is not defined": (lambda k, v: v.i + undefined, "undefined"),  # type: ignore[name-defined]  # noqa: F821
    "a class": (lambda k, v: v.i * Scale.factor, "Scale"),
    "a method that is not listed": (lambda k, v: v.s.casefold(), "casefold"),
    "a method of dict": (lambda k, v: v.items(), "items"),
    "a method that is not called": (lambda k, v: v.s.upper == "A", "compares a method"),
    "keys": (lambda k, v: v.keys(), "keys"),
    "a method of a constant": (lambda k, v: "abc".upper() + v.s, "attribute upper"),
    "a dunder": (lambda k, v: v.i.__class__, "__class__"),
    "a value as a key": (lambda k, v: {v.s: 1}, "key"),
    "a value in a set": (lambda k, v: {v.s}, "key"),
    "an index that is a value": (lambda k, v: v.ints[v.i], "constant index"),
    "a slice by a value": (lambda k, v: v.s[: v.i], "constant bounds"),
    "a slice with a step": (lambda k, v: v.s[::2], "slice"),
    "a slice of a list": (lambda k, v: v.ints[:2], "slice"),
    "a method with a value": (lambda k, v: v.s.startswith(v.t), "constant"),
    "text times a number": (lambda k, v: v.s * 3, "str * int"),
    "text plus a number": (lambda k, v: v.s + 1, "str + int"),
    "text less than a number": (lambda k, v: v.s < 1, "str < int"),
    "less than None": (lambda k, v: v.i < None, "None"),
    "a power of floats": (lambda k, v: v.f**2, "x * x"),
    "a power by a value": (lambda k, v: v.i**v.j, "constant exponent"),
    "a shift": (lambda k, v: v.i << 2, "shift"),
    "divmod": (lambda k, v: divmod(v.i, 2), "divmod"),
    "a division by zero": (lambda k, v: v.i / 0, "zero"),
    "decimals": (lambda k, v: v.d + v.d, "Decimal"),
    "a decimal with a float": (lambda k, v: v.d > 1.5, "Decimal"),
    "lists compared": (lambda k, v: v.ints == v.ints, "list"),
    "int and float alternatives": (lambda k, v: when(v.b, v.i, v.f), "different types"),
    "an int for a missing float among ints": (lambda k, v: coalesce(v.f, 0) * v.i, "write 0.0 for 0"),
    "an int for a missing float, and large": (lambda k, v: coalesce(v.f, 3) * 2**53, "write them as floats"),
    "a large int": (lambda k, v: v.i + 2**63, "64 bits"),
    "a complex number": (lambda k, v: v.f + 1j, "complex"),
    "None": (lambda k, v: None, "None"),
    "a field that is always None": (lambda k, v: {**v, "x": None}, "None"),
    "an empty dict": (lambda k, v: {}, "at least one"),
    "an empty list": (lambda k, v: [], "list"),
    "a list of mixed types": (lambda k, v: [v.i, v.s], "one type"),
    "a tuple in a dict": (lambda k, v: {"x": (v.i, v.j)}, "tuple"),
    "a set": (lambda k, v: {1, 2}, "set"),
    "a function that is returned": (lambda k, v: when, "function"),
    "generator": (yielding, "generator"),
    "async": (waiting, "async"),
    "*args": (collecting, "*args"),
    "too few arguments": (lambda v: v, "takes 1 arguments, not 2"),
    "a parameter that is not given": (lambda k, v, limit: v.i > limit, "limit"),
    "a default that could change": (lambda k, v, wanted=["a"]: isin(v.s, wanted), "wanted"),
    "partial": (functools.partial(isin, values=("a",)), "partial"),
    "bound method": (Scale().apply, "bound method"),
    "callable object": (Scale(), "Scale"),
    "class": (Scale, "class Scale"),
    "built-in": (print, "built-in print"),
    "method descriptor": (str.upper, "built-in upper"),
}
"""Each with a part of the reason that a user reads."""
