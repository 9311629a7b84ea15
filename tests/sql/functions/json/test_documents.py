"""Documents are read and written as Jackson does; what is expected was written by Jackson."""

from __future__ import annotations

import cProfile
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.sql.functions.json.documents import MISSING, BadDocument, encodable, exact, looked_up, plain, quick, write
from potok.sql.functions.json.json import steps_of

WRITTEN = {
    '{"a":1.10,"b":1e3,"c":1E-7,"d":0.0000001}': '{"a":1.10,"b":1E+3,"c":1E-7,"d":1E-7}',
    "[-0, -0.0, 0e3, 100.00, 123456789012345678901234567890]": "[0,0.0,0E+3,100.00,123456789012345678901234567890]",
    '{"a":1,"b":2,"a":3}': '{"a":3,"b":2}',
    '"\\u001b\\n\\/é\\ud83d\\ude00"': '"\\u001B\\n/é😀"',
    "1 abc": "1",
    '"a"x': '"a"',
    "{} x": "{}",
    " 5 ": "5",
    "1e400": "1E+400",
    "[ true , null ]": "[true,null]",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_documents_are_written_with_all_their_digits_and_no_blanks(text: str) -> None:
    assert write(looked_up(text, lambda document: document)) == WRITTEN[text]


@pytest.mark.parametrize(
    "text", ["abc", "1abc", "nullx", "[1,2", "[1,]", "NaN", "01", "1.", ".5", "+1", "{a:1}", "'a'", '"\t"', "tru"]
)
def test_other_texts_are_not_documents(text: str) -> None:
    with pytest.raises(BadDocument, match="invalid JSON"):
        quick(text)


def test_an_empty_text_is_null_without_an_error() -> None:
    assert quick("") is quick(" \n") is MISSING


def test_numbers_can_be_written_without_exponents() -> None:
    assert write(exact("[1e3, 1E-7, 2.50]"), plain) == "[1000,0.0000001,2.50]"


@pytest.mark.parametrize("number", ["1e10000", "1e-10000", "1e999999999", "-1E-999999999"])
def test_a_number_that_would_fill_pages_without_its_exponent_is_refused(number: str) -> None:
    with pytest.raises(BadDocument, match="too many digits"):
        write(exact(number), plain)


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert encodable(exact('"a\\ud800"')) == "a?"


def test_a_document_that_is_too_deep_is_refused() -> None:
    with pytest.raises(BadDocument):
        exact("[" * 100_000)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(document=JSON)
def test_what_was_written_is_read_again(document: Any) -> None:
    assert quick(write(document)) == json.loads(json.dumps(document)) == exact(write(document))


PATHS = {
    "$": (),
    "$.a.b": ("a", "b"),
    "$.@type": ("@type",),
    "$.a:b_c": ("a:b_c",),
    "$[0][12]": ("0", "12"),
    '$["a b"].c': ("a b", "c"),
    "$['c']": ("c",),
    '$["a\\"b\\\\"]': ('a"b\\',),
    "$.größe": ("größe",),
}


@pytest.mark.parametrize("path", PATHS)
def test_paths_have_steps(path: str) -> None:
    assert steps_of(path) == PATHS[path]


@pytest.mark.parametrize(
    "path",
    ["", "a", "$a", "$.", "$..a", "$.*", "$[", "$[]", "$[0", '$["a', '$["a\\x"]', "$[-1]", "$ .a", "$['", '$["a\\'],
)
def test_other_texts_are_not_paths(path: str) -> None:
    with pytest.raises(ValueError, match="invalid JSON path"):
        steps_of(path)


@given(st.text() | st.text(st.characters(max_codepoint=0x80)))
def test_texts_are_escaped_one_character_after_the_other(text: str) -> None:
    written = write(text)
    assert json.loads(written) == text
    short = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    assert written[1:-1] == "".join(short.get(c, f"\\u{ord(c):04X}" if c < " " else c) for c in text)


@pytest.mark.parametrize("character", ['"', "\\", "\n", "\x01"])
def test_what_must_be_escaped_costs_no_call_each(character: str) -> None:
    def calls(text: str) -> int:
        profile = cProfile.Profile()
        profile.runcall(write, text)
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(character * 50_000) <= calls(character) + 5
