"""Random lambdas as source text, typed so that most of them mean something, and random values to run them on."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

LIMIT_INT = 7
LIMIT_FLOAT = 2.5
BASE = datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=UTC)

_INTS = ["0", "1", "-1", "2", "3", "10", "LIMIT_INT", str(2**31), str(2**53), str(2**53 + 1), str(2**62), str(-(2**63))]
_FLOATS = ["0.0", "1.5", "-2.0", "1e300", "0.1", "LIMIT_FLOAT", "9007199254740993.0"]
_TEXTS = ['""', '"a"', '"ab"', '"é"', '"ß"', '" "', '","', '"1"']
_KEYS = ['"a"', '"b"', '"é"', '""']


def _apply(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda found: template.format(*found))


def _either(*choices: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(*choices)


def _pick(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


_int_leaf = _pick("v['i']", "v.j", "v.i", "v['address']['zip']", "v.ints[0]", "v.ints[-1]", "v['ints'][2]", "v.m['a']",
                  "v.m.get('b')", "v.m.get('b', 5)", "v.people[0].age", "v.at.hour", "v.at.microsecond", "v.day.year",
                  "v.day.weekday()", "v.s.count('a')", "length(v.s)", "length(v.words)", *_INTS)  # fmt: skip
_float_leaf = _pick("v['f']", "v.g", "v.w['a']", "v.w.get('a', 0)", "(v.at - BASE).total_seconds()", *_FLOATS)
_text_leaf = _pick("k", "v['s']", "v.t", "v.address.city", "v.words[0]", "v.words[-2]", "v.people[-1]['name']", *_TEXTS)
_bool_leaf = _pick("v.b", "v['c']", "True", "False", "isin(v.i, [0, 1, 7.0, None])", "isin(v.f, (0, 1.5, 2**53 + 1))",
                   "isin(v.s, {'', 'a', 'é', 1})", "contains(v.words, 'a')", "contains(v.ints, 1)", "v.d > 1",
                   "v.d == DECIMAL", "v.at >= BASE", "v.day < DAY", "v.raw == b'a'", "is_null(v.address)",
                   "is_null(v.people[0].name)", "v.s == None", "None != v.i", "isin(v.b, [1])")  # fmt: skip


def _numbers(ints: bool, depth: int) -> st.SearchStrategy[str]:
    leaf = _int_leaf if ints else _either(_float_leaf, _int_leaf)
    if depth == 0:
        return leaf
    one, other = _numbers(ints, depth - 1), _numbers(True, depth - 1)
    op = _pick("+", "-", "*", "//", "%", *(("&", "|", "^") if ints else ("/",)))
    return _either(
        leaf,
        _apply("({} {} {})", one, op, other),
        _apply("({} {} {})", other, op, one),
        _apply("({}{})", _pick("-", "+"), one),
        _apply("({} ** {})", one, _pick("0", "1", "2", "3", "7")),
        _apply("when({}, {}, {})", booleans(depth - 1), one, one),
        _apply("coalesce({}, {})", one, one),
        _apply("{}({}, {})", _pick("least", "greatest"), one, one),
        _apply("absolute({})", one),
        _apply("({} {} {})", one, op, booleans(depth - 1)),
    )


def texts(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return _text_leaf
    one = texts(depth - 1)
    method = _pick("upper()", "lower()", "strip()", "lstrip()", "rstrip('a ')", "title()", "capitalize()", "swapcase()",
                   "replace('a', 'ß')", "replace('a', '', 1)", "replace('é', 'e', -1)", "split(',')[0]",
                   "split()[-1]", "split('a', maxsplit=1)[1]")  # fmt: skip
    bound = _pick("", "0", "1", "-1", "2", "-3", "10")
    return _either(
        _text_leaf,
        _apply("({} + {})", one, one),
        _apply("{}.{}", one, method),
        _apply("{}[{}:{}]", one, bound, bound),
        _apply("{}[{}]", one, _pick("0", "1", "-1", "-2")),
        _apply("concat({}, {}, {})", one, one, one),
        _apply("when({}, {}, {})", booleans(depth - 1), one, _either(one, st.just("None"))),
        _apply("coalesce({}, {})", one, one),
        _apply("{}({}, {})", _pick("least", "greatest"), one, one),
    )


def booleans(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return _bool_leaf
    compare = _pick("==", "!=", "<", "<=", ">", ">=")
    ints, floats, text = _numbers(True, depth - 1), _numbers(False, depth - 1), texts(depth - 1)
    predicate = _pick("startswith('a')", "endswith(('b', 'é'))", "isdigit()", "isalpha()", "isalnum()", "islower()", "isupper()")
    return _either(
        _bool_leaf,
        _apply("({} {} {})", ints, compare, ints),
        _apply("({} {} {})", ints, compare, floats),
        _apply("({} {} {})", floats, compare, ints),
        _apply("({} {} {})", text, compare, text),
        _apply("({} {} {})", text, _pick("==", "!="), ints),
        _apply("({} {} {})", booleans(depth - 1), _pick("&", "|", "^", "==", "<"), booleans(depth - 1)),
        _apply("not_({})", _either(ints, floats, text, booleans(depth - 1), st.just("v.ints"), st.just("v.m"))),
        _apply("between({}, {}, {})", ints, floats, ints),
        _apply("is_null({})", _either(ints, floats, text)),
        _apply("{}.{}", text, predicate),
        _apply("contains({}, {})", text, _pick(*_TEXTS)),
    )


def results(depth: int) -> st.SearchStrategy[str]:
    scalar = _either(_numbers(True, depth), _numbers(False, depth), texts(depth), booleans(depth))
    number = _numbers(True, 1)
    return _either(
        scalar,
        scalar,
        _apply("{{**v, 'x': {}}}", scalar),
        _apply("{{**v, 'i': {}, 'y': {}}}", scalar, scalar),
        _apply("{{'a': {}, 'b': {{'c': {}}}}}", scalar, scalar),
        _apply("[{}, {}]", number, number),
        _apply("(k, {})", scalar),
        _pick("v", "v.address", "v['people']", "v.m", "v.s.split()", "v.s.split(',', 1)", "k"),
    )


lambdas = results(3).map(lambda body: f"lambda k, v: {body}")

_any_int = st.one_of(
    st.integers(-12, 12),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62, 3_037_000_500]),
)
_any_float = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.0, 0.1, float("nan"), float("inf"), float("-inf"), 1e308, 2.0**53, 5e-324]),
    st.floats(),
    st.integers(-10, 10).map(float),
)
any_text = st.one_of(
    st.sampled_from(["", "a", "ab", "aa,b", " a\x1cb\u3000", "Ab 1", "é", "ß", "ΑΣ", "ǆ", "a\u0301", "12", "١"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.text("aAbß1 ,\t'", max_size=6),
)
_instant = st.datetimes(timezones=st.just(UTC))


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(strategy, strategy, strategy, strategy, st.none())


_address = st.fixed_dictionaries({"city": _maybe(any_text), "zip": _maybe(_any_int)})
_person = st.fixed_dictionaries({"name": _maybe(any_text), "age": _maybe(_any_int)})
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "i": _any_int,
    "j": st.integers(-(2**31), 2**31 - 1),
    "f": _any_float,
    "g": st.floats(width=32),
    "s": any_text,
    "t": any_text,
    "b": st.booleans(),
    "c": st.booleans(),
    "raw": st.sampled_from([b"", b"a", b"\xff"]),
    "d": st.integers(-300, 300).map(lambda cents: Decimal(cents) / 100),
    "at": st.one_of(st.just(BASE), st.just(BASE - timedelta(microseconds=1)), _instant),
    "day": st.dates(),
    "ints": st.lists(_maybe(_any_int), max_size=3),
    "words": st.lists(_maybe(any_text), max_size=3),
    "address": _address,
    "people": st.lists(_maybe(_person), max_size=2),
    "m": st.dictionaries(st.sampled_from(["a", "b"]), _maybe(_any_int)),
    "w": st.dictionaries(st.sampled_from(["a", "b"]), _maybe(_any_float)),
}
DAY = date(2024, 2, 29)
DECIMAL = Decimal("1.50")

whole_values = st.fixed_dictionaries(_FIELDS)
"""Values in which nothing is missing."""

values = st.one_of(
    whole_values,
    st.fixed_dictionaries({name: _maybe(strategy) for name, strategy in _FIELDS.items()}),
    st.fixed_dictionaries({name: _maybe(strategy) for name, strategy in _FIELDS.items()}),
)
