from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.records.conversion.fit import Fitted
from potok.records.formats.lenient import json_format
from potok.records.formats.lenient.json_block import FOLDING, readable_in_blocks
from potok.records.formats.lenient.json_format import decode_rows, decode_typed
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from records.texts import NUMBERS, STRINGS, TRAPS, values

SCHEMAS = [
    "A bigint, B double, C string, D boolean, E array<string>, F struct<X: bigint, Y: double>",
    "A timestamp, B date, C time, D int",
    "A bigint, `a` bigint, `b` double, E array<struct<X: timestamp, `y`: string>>",
    "F struct<F: struct<A: double, B: array<array<bigint>>>>, D boolean",
    "A decimal(10,2), B decimal(20,18), C array<decimal(3,1)>, D string",
    "A map<string, bigint>, B decimal(10,2), C string",
]
READABLE = [True, True, True, True, True, False]
NAME = re.compile(rb'"([A-Za-z])":')


def schema(text: str) -> Schema:
    made = declared_schema(text)
    assert made is not None
    return made


def rows(fitted: Fitted) -> list[Any]:
    # Not the objects but how they are written: that tells 0.0 from -0.0 and 1 from 1.0.
    return [repr(row) for row in fitted.column.to_pylist()]


def agrees(declared: Schema, texts: list[bytes | None]) -> bool:
    # A slice of a longer column: offsets that do not begin at zero.
    whole = decode_typed(pa.array([b"{", *texts], pa.binary()).slice(1), declared)
    each = [decode_rows(pa.array([text], pa.binary()), declared) for text in texts]
    whole.column.validate(full=True)
    assert all(whole.column[row].as_py() is None for row in whole.errors)
    same_errors = whole.errors == {row: one.errors[0] for row, one in enumerate(each) if one.errors}
    return same_errors and rows(whole) == [row for one in each for row in rows(one)]


@st.composite
def respelled(draw: st.DrawFn, texts: st.SearchStrategy[bytes | None]) -> bytes | None:
    text = draw(texts)
    if text is None:
        return None
    case = draw(st.sampled_from([bytes.upper, bytes.lower, bytes.lower, None]))
    change = case or (lambda name: name.swapcase() if draw(st.booleans()) else name)
    return NAME.sub(lambda found: b'"' + change(found[1]) + b'":', text)


BLOCKS = st.one_of(
    [
        st.tuples(st.just(made), st.lists(respelled(values(made)), min_size=1, max_size=6))
        for made in map(schema, SCHEMAS)
    ]
)


@settings(max_examples=250)
@given(BLOCKS)
def test_a_block_is_read_as_its_rows_are(block: tuple[Schema, list[bytes | None]]) -> None:
    assert agrees(*block)


def test_which_schemas_are_read_in_blocks() -> None:
    assert [readable_in_blocks(schema(text)) for text in SCHEMAS] == READABLE
    assert not readable_in_blocks(schema("bigint"))
    assert not readable_in_blocks(schema("`ИМЯ` bigint"))
    assert not readable_in_blocks(schema("`A/B` bigint"))
    assert not readable_in_blocks(schema("A decimal(38,18)"))


@pytest.mark.parametrize("trap", [*TRAPS, *(trap.upper() for trap in TRAPS)], ids=lambda trap: trap[:24])
def test_each_format_trap_is_isolated_wherever_it_occurs(trap: str) -> None:
    good = b'{"A":1,"B":2.5,"C":"x","D":true,"E":["x"],"F":{"X":1,"Y":0.5}}'
    for around in (good, good.lower()):
        for texts in ([trap.encode()], [trap.encode(), around], [around, trap.encode()]):
            assert agrees(schema(SCHEMAS[0]), texts)


@pytest.mark.parametrize("item", [*NUMBERS, *STRINGS, "true", "null", "[]", "{}", '[1,"a",null]', '{"Z":1.50}'])
def test_an_item_means_the_same_in_every_field(item: str) -> None:
    for place, around in ((0, b'{"A":1,"B":2}'), (1, b'{"a":1,"b":2}'), (4, b'{"a":1,"b":2}')):
        for name in "ABCDEFaz":
            assert agrees(schema(SCHEMAS[place]), [around, f'{{"{name}":{item}}}'.encode()])


@pytest.mark.parametrize(
    "digits", ["1", "12", "99999999", "0", "0.1", "1.5", "0.001", "5." + "0" * 34, "0." + "0" * 45 + "1"]
)
def test_a_decimal_is_exact_or_an_error_whatever_its_exponent(digits: str) -> None:
    # One block for each: a number that the reader refuses sends its whole block the other way.
    for exponent in ("", *(f"e{power}" for power in range(-60, 60, 3)), "e-38", "e-39", "e-40", "e-41", "E+9", "e8"):
        assert agrees(schema("A decimal(10,2), B decimal(20,18)"), [f'{{"A":{digits}{exponent}}}'.encode()])
        assert agrees(schema("A decimal(10,2), B decimal(20,18)"), [f'{{"B":"{digits}{exponent}"}}'.encode()])


@pytest.mark.parametrize("spell", [str.upper, str.lower, str.title], ids=["upper", "lower", "title"])
def test_a_block_of_one_spelling_is_not_read_row_by_row(spell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_format, "decode_rows", None)
    declared = schema("USER_ID string, AMOUNT double, SHIPPING struct<CITY: string, AT: timestamp>")
    user, amount, shipping, city, at = map(spell, ("user_id", "amount", "shipping", "city", "at"))
    text = f'{{"{user}":"u","{amount}":1.5,"{shipping}":{{"{city}":"Köln \\n","{at}":1700000000000}}}}'.encode()
    fitted = decode_typed(pa.array([text, text.replace(b"1.5", b"null")] * 3000, pa.binary()), declared)
    assert fitted.errors == {}
    row = fitted.column[0].as_py()
    assert (row["USER_ID"], row["AMOUNT"], row["SHIPPING"]["CITY"]) == ("u", 1.5, "Köln \n")
    assert row["SHIPPING"]["AT"].timestamp() == 1_700_000_000
    assert fitted.column[1].as_py()["AMOUNT"] is None


def test_only_rows_of_another_spelling_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[bytes] = []

    def spy(texts: pa.Array, declared: Schema) -> Fitted:
        again.extend(texts.to_pylist())
        return decode_rows(texts, declared)

    monkeypatch.setattr(json_format, "decode_rows", spy)
    texts = [
        b'{"a":0}',
        b'{"a":0}',
        b'{"a":1}',
        b'{"A":2}',
        b'{"a":3,"A":4}',
        b'{"b":5}',
        b'{"a":6}',
        b'{"\\u0061":7}',
        '{"ſ":8}'.encode(),
    ]
    fitted = decode_typed(pa.array(texts, pa.binary()), schema("A bigint, S bigint"))
    assert again == [texts[3], texts[4], texts[7], texts[8]]
    assert [(row["A"], row["S"]) for row in fitted.column.to_pylist()[2:]] == [
        *((1, None), (2, None), (4, None), (None, None), (6, None), (7, None), (None, 8))
    ]


def test_the_characters_that_become_ascii_when_capital_are_all_known() -> None:
    found = {chr(code) for code in range(128, 0x110000) if any(part.isascii() for part in chr(code).upper())}
    assert found == set(FOLDING)


def test_big_blocks_keep_their_order_in_any_mix_of_spellings() -> None:
    spelled = ['{"N":%d}', '{"n":%d}', '{"n":%d,"N":-1}', '{"x":1,"n":%d}']
    texts = [(spelled[row % 7 % 4] % row).encode() for row in range(20_000)]
    texts[9_000] = b"{"
    fitted = decode_typed(pa.array(texts, pa.binary()), schema("N bigint"))
    assert list(fitted.errors) == [9_000]
    expected = [-1 if row % 7 % 4 == 2 else row for row in range(20_000)]
    expected[9_000] = None  # type: ignore[call-overload]
    assert fitted.column.field(0).to_pylist() == expected
