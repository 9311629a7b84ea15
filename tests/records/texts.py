"""JSON texts for property tests: what a schema asks for, what it does not, and what is not JSON at all."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from potok.records.schemas.schema import Schema

NUMBERS = [
    *("0", "-0", "-0.0", "0.0", "1", "1.0", "1.5", "-1", "1e5", "1E400", "1e-400", "0.1", "5e-324", "1e-2"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "123456789012345678901234567890"),
    *("9007199254740993", "2147483648", "32768", "0.1000000000000000055", "12345678901234567.25"),
    *("1700000000000", "253402300800000", "253402300799999", "-62135596800001"),
    *("NaN", "Infinity", "-Infinity", "Inf", "01", "1.", ".5", "+1", "1e", "-"),
]
STRINGS = [
    *('""', '"a"', '"\\u0041"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\u0000"', '"é"', '"😀"', '"\n"', '"\t"', '"\x00"'),
    *('"a\\"b"', '"\\x"', '"{"', '"}],{"', "'a'", '"', '"\x7f"', '"NaN"', '"1.50"', '"1.505"', '"AQI="', '"A"'),
    *('"2020-01-01T00:00:00Z"', '"2020-01-01T00:00:00.5Z"', '"2020-01-01T00:00:00.1234567Z"', '"2020-01-01T00:00:00"'),
    *('"2020-02-30T00:00:00Z"', '"0000-01-01T00:00:00Z"', '"0001-01-01T00:00:00+01:00"', '"2020-01-01"'),
    *('"2020-01-01T24:00:00Z"', '"2020-01-01T00:00:60Z"', '"2020-01-01T00:00:00+24:00"', '"2020-01-01 00:00:00Z"'),
    '"9999-12-31T23:59:59-01:00"',
]
NAMES = ["a", "b", "c", "d", "e", "f", "x", "y", "\\u0061", ""]
TRAPS = [
    *("", "null", "1", "[]", "  {}", "{}", "{} ", "{}{}", "}", "{", '{"a":', '{"b":1}}', '{"a":1} x', '{"a":1,}'),
    *('{"a":1}{"a":2}', '{"a":1}\n{"a":2}', '{"a":1},"z":{}', '{"a":1}],"z":[{}', '{"a":1}\x00', '{"a":1}\x00{"a":2}'),
    *('\ufeff{"a":1}', '{"z":NaN}', '{"z":-Infinity}', '{"z":1e999}', '{"a":null,"a":1}', '{"a":1,"a":null}'),
    *('{"f":{"x":1},"f":{"y":2}}', '{"e":null,"e":["b"]}'),
    *('{"z":' + "[" * depth + "]" * depth + "}" for depth in (400, 1000, 1030, 10_000)),
]
SPACES = st.sampled_from([""] * 12 + [" ", "\t", "\n", "\r\n", "\x0b", "\x00", "\u00a0"])


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    """Any object, with names that come twice now and then."""
    members = draw(st.lists(st.tuples(st.sampled_from(NAMES), values), max_size=5))
    inside = f",{draw(SPACES)}".join(f'"{name}":{value}' for name, value in members)
    return "{" + draw(SPACES) + inside + draw(st.sampled_from(["}"] * 15 + [",}", "", "}}", "]"]))


SCALARS = st.sampled_from([*NUMBERS, *STRINGS, "true", "false", "null", "null", "nul"])
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"), objects(inner)),
    max_leaves=6,
)


def fitting(schema: Schema) -> st.SearchStrategy[str]:
    """Texts that mostly fit the schema."""
    return st.one_of(*[_exactly(schema)] * 9, ANYTHING)


def _exactly(schema: Schema) -> st.SearchStrategy[str]:
    if schema.kind == "struct":
        members = [st.one_of(fitting(field.schema), st.just("")).map(_named(field.name)) for field in schema.fields]
        return st.tuples(*members).map(lambda texts: "{" + ",".join(text for text in texts if text) + "}")
    if schema.kind == "list":
        assert schema.item is not None
        return st.lists(fitting(schema.item), max_size=3).map(lambda items: f"[{','.join(items)}]")
    if schema.kind == "map":
        assert schema.item is not None
        return st.dictionaries(st.sampled_from(["k", "1", "-2", "007"]), fitting(schema.item), max_size=2).map(
            lambda members: "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}"
        )
    return {
        "bool": st.sampled_from(["true", "false"]),
        "double": st.floats(allow_nan=False, allow_infinity=False).map(repr),
        "string": st.text(max_size=5).map(json.dumps),
        "timestamp[us, tz=UTC]": st.sampled_from(["1700000000000", "0", "-1", '"2020-03-01T10:00:00.25+02:00"']),
        "date32[day]": st.just('"2020-02-29"'),
        "time32[ms]": st.sampled_from(['"23:59:59.999"', '"01:02"', "0", "86399999", "86400000"]),
        "binary": st.just('"AQI="'),
        "decimal128(10, 2)": st.sampled_from(["1.25", '"1.5"', "-3", "1e2", "1234567890"]),
    }.get(str(schema.arrow), st.integers(-300, 300).map(str))


def _named(name: str):  # type: ignore[no-untyped-def]
    return lambda text: f'"{name}":{text}' if text else ""


def values(schema: Schema) -> st.SearchStrategy[bytes | None]:
    """Bytes that mostly fit the schema; now and then null, a trap, or damaged in one place."""
    whole = fitting(schema).map(_encoded)
    return st.one_of(*[whole] * 7, _damaged(whole), st.sampled_from(TRAPS).map(_encoded), st.none())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@st.composite
def _damaged(draw: st.DrawFn, texts: st.SearchStrategy[bytes]) -> bytes:
    text = draw(texts)
    place = draw(st.integers(0, len(text)))
    damage = draw(st.sampled_from([b'"', b"{", b"}", b"]", b",", b":", b"\\", b"\n", b"\0", b"-", b"\xff", b"\xc3"]))
    return text[:place] + damage + text[place + draw(st.integers(0, 1)) :]
