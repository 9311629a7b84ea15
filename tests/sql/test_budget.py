from __future__ import annotations

import pyarrow as pa
import pytest

from limited import run_limited
from potok.sql.budget import LARGEST_VALUE, MOST_BYTES, TooLarge, allowance, reserve, row_sizes, settle, size_of, spent

VALUES = """
import pyarrow as pa
from potok.errors import PotokError
from potok.sql.expressions.check import check
from potok.sql.expressions.compute import compute
from potok.sql.functions.function import Context
from potok.sql.functions.registry import all_functions
from potok.sql.syntax.parse import parse_expression
from sql.columns import Columns
from potok.sql.types import VARCHAR
all_functions()
columns = {"V": pa.array(["b"])}
first = parse_expression("REGEXP_REPLACE(UCASE(V), 'a', V) LIKE 'x_'")
compute(check(first, Columns({"V": VARCHAR})), columns, 1, Context())
limit(1_000)
outcomes = {}
for text in given:
    context = Context()
    try:
        found = compute(check(parse_expression(text), Columns({"V": VARCHAR})), columns, 1, context)
        outcomes[text] = "; ".join(context.failures.values()) or "a value"
    except PotokError as error:
        outcomes[text] = f"{type(error).__name__}: {error.message}"
    except MemoryError:
        outcomes[text] = "MemoryError"
print(json.dumps(outcomes))
"""
LARGE = "RPAD('a', 16000000, 'b')"
SERIES = "GENERATE_SERIES(1, 100000)"


def outcomes(*texts: str) -> list[str]:
    found = run_limited(VALUES, texts)
    return [found[text] for text in texts]


def test_a_value_that_doubles_is_null_when_it_has_become_too_large() -> None:
    steps = [
        "CONCAT(s, s)",
        "s + s",
        "s || s || s",
        "CONCAT_WS(s, s, s, s)",
        "REPLACE(s, 'x', 'xxxx')",
        "REPLACE(s, '', 'xx')",
        "REPLACE(s, s, CONCAT(s, s))",
        "REGEXP_REPLACE(s, 'xxxxx', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')",
        "ENCODE(s, 'utf8', 'hex')",
        "ARRAY_JOIN(ARRAY[s, s, s], s)",
        "LPAD(s, LEN(s) * 3, s)",
        "TO_JSON_STRING(ARRAY[s, s])",
    ]
    texts = [f"REDUCE(GENERATE_SERIES(1, 24), 'xxxxxxxxxx', (s, x) => {step})" for step in steps]
    for text, outcome in zip(texts, outcomes(*texts), strict=True):
        assert outcome.endswith("MB") or "too long" in outcome or "filled up" in outcome, (text, outcome)


def test_an_array_that_doubles_is_null_when_it_has_become_too_large() -> None:
    starts = ["ARRAY[1]", "ARRAY[true]", "ARRAY['']", "ARRAY[ARRAY[1]]"]
    texts = [f"REDUCE(GENERATE_SERIES(1, 60), {start}, (s, x) => ARRAY_CONCAT(s, s))" for start in starts]
    texts.append(f"SPLIT({LARGE}, 'b')")
    texts.append(f"SPLIT({LARGE}, '')")
    for text, outcome in zip(texts, outcomes(*texts), strict=True):
        assert outcome.endswith("MB"), (text, outcome)


def test_values_that_are_too_large_together_end_the_statement() -> None:
    texts = [
        f"TRANSFORM({SERIES}, x => {SERIES})",
        f"TRANSFORM({SERIES}, x => '{'y' * 100_000}')",
        f"TRANSFORM({SERIES}, x => {LARGE})",
        f"TRANSFORM({SERIES}, x => RPAD(V, 1000000, 'ab'))",
        f"TRANSFORM({SERIES}, x => CASE WHEN x > 5 THEN '{'y' * 100_000}' ELSE '' END)",
        f"ARRAY[{', '.join([LARGE] * 40)}]",
        "MAP(" + ", ".join(f"'k{n}' := {LARGE}" for n in range(40)) + ")",
        f"STRUCT({', '.join(f'k{n} := {LARGE}' for n in range(40))})",
        f"CONCAT({', '.join([LARGE] * 40)})",
        f"TRANSFORM({SERIES}, x => MAP('a' := {LARGE})['a'])",
        f"TRANSFORM({SERIES}, x => ELT(1, {LARGE}))",
    ]
    for text, outcome in zip(texts, outcomes(*texts), strict=True):
        assert outcome.startswith("TooLarge"), (text[:80], outcome)


def test_patterns_of_absurd_size_are_refused_before_they_are_compiled() -> None:
    repeated = [
        "(" * 23 + "a" + ")+" * 23,
        "(?:" * 23 + "ab" + ")+?" * 23,
        "(" * 8 + "a" + "){50}" * 8,
        "(" * 12 + "a" + "){3,4}" * 12,
        "(a{2,}b){900000}",
        "(?:" * 3000 + "a" + ")" * 3000,
        "[" * 3000 + "a" + "]" * 3000,
        "\\p{L}" * 3000,
        "a" * 5_000_000,
    ]
    texts = [f"REGEXP_EXTRACT('{pattern}', 'aaaa')" for pattern in repeated]
    for text, outcome in zip(texts, outcomes(*texts), strict=True):
        assert "a regular expression" in outcome and "Error" not in outcome, (text[:80], outcome[-200:])


def test_a_search_that_would_remember_too_much_is_refused() -> None:
    (outcome,) = outcomes(f"REGEXP_EXTRACT('(?:(a)|(b))*$', {LARGE})")
    assert "too long for" in outcome


def test_patterns_of_like_and_of_dates_are_refused_when_they_are_absurdly_long() -> None:
    long, underscores = f"V LIKE '{'_%' * 100_000}'", f"V LIKE '{'_x' * 5_000}%_'"
    dates = [
        f"FORMAT_TIMESTAMP(FROM_UNIXTIME(0), '{'y' * 100_000}')",
        f"FORMAT_TIMESTAMP(FROM_UNIXTIME(0), '{'[' * 400}{']' * 400}')",
        "PARSE_DATE('x', RPAD('y', 100000, 'y'))",
        "STRINGTOTIMESTAMP('x', RPAD('y', 100000, 'y'))",
    ]
    found = outcomes(long, underscores, *dates)
    assert found[0].startswith("SqlTypeError")
    assert found[1].startswith(("SqlTypeError", "a value"))
    assert all("pattern" in outcome for outcome in found[2:]), found


def test_numbers_of_absurd_size_cost_nothing() -> None:
    exact, rounded, cut = outcomes(
        "DECIMAL '1e999999999'", "ROUND(1.5, 1000000000)", "CAST('1e999999999' AS DECIMAL(9, 2))"
    )
    assert exact.startswith("SqlSyntaxError")
    assert rounded == "a value"
    assert "does not fit" in cut


SCRIPTS = """
from potok.errors import PotokError
from potok.sql.syntax.parse import parse_script
parse_script("DEFINE a = 'b'; SELECT ${a} FROM x;")
limit(400)
outcomes = []
for text in given:
    try:
        outcomes.append(f"{len(parse_script(eval(text), bounded=True))} statements")
    except PotokError as error:
        outcomes.append(f"{error.message} {len(str(error))}")
    except MemoryError:
        outcomes.append("MemoryError")
print(json.dumps(outcomes))
"""


REFUSED = {
    "\"SELECT '\" + 'x' * 15_000_000": "never closed",
    '"SELECT \'" + "it\'\'s" * 3_000_000': "never closed",
    "'SELECT `' + 'x' * 15_000_000": "never closed",
    "'/*' + '* ' * 7_000_000": "never closed",
    "'SELECT ' + '1' * 15_000_000 + '.x'": "neither a number nor a name",
    "'SELECT ' + '1' * 15_000_000 + '.5;'": "at most 38 digits",
    "'x' * 15_000_000 + ';'": "no statement begins",
    "'\\n' * 15_000_000 + ';'": "0 statements",
    "'SELECT ' + '1,' * 7_000_000 + '1 FROM x;'": "more than 100,000 tokens",
    "'SHOW TOPICS;' * 1_000_000": "more than 100,000 tokens",
    "'(' * 10_000_000": "more than 100,000 tokens",
    "'SELECT 1 FROM x;' + 'x' * 17_000_000": "more than 16 MB",
    "'DEFINE a = \\'xxxxxxxxxx\\';' + 'DEFINE a = \\'${a}${a}\\';' * 60": "more than 16 MB",
    "'DEFINE a = \\'' + 'x' * 1_000_000 + '\\';' + 'SELECT \\'${a}\\' FROM x;' * 5_000": "more than 16 MB",
    "'DEFINE a = \\'' + 'x' * 1_000_000 + '\\';' + 'SELECT ${a} FROM x;' * 5_000": "more than 16 MB",
}


def test_a_script_that_would_fill_the_memory_is_refused() -> None:
    found = run_limited(SCRIPTS, list(REFUSED))
    for (script, outcome), reported in zip(REFUSED.items(), found, strict=True):
        length = reported.rpartition(" ")[2]
        assert outcome in reported, (script, reported[:200])
        assert not length.isdigit() or int(length) < 20_000, "the error repeats the text"


def test_what_is_counted_is_what_is_alive() -> None:
    with allowance():
        reserve(100)
        before = spent()
        reserve(MOST_BYTES // 2)
        settle(before, 7)
        assert spent() == 107
        reserve(MOST_BYTES // 2)
        with pytest.raises(TooLarge, match="512 MB"):
            reserve(MOST_BYTES // 2)


def test_an_allowance_grows_with_what_the_work_was_given() -> None:
    with allowance(lambda: MOST_BYTES):
        reserve(5 * MOST_BYTES)
        with pytest.raises(TooLarge):
            reserve(1)


def test_nothing_stays_counted_without_an_allowance() -> None:
    for _ in range(3):
        reserve(MOST_BYTES)
    assert spent() == 0


def test_the_sizes_of_rows_are_those_of_their_parts() -> None:
    texts = pa.array(["", "abc", None, "é"])
    assert row_sizes(texts).tolist() == [4, 7, 4, 6]
    lists = pa.array([["ab"], [], None, ["x", "y"]], pa.list_(pa.string())).slice(1)
    assert row_sizes(lists).tolist() == [0, 0, 2 * (16 + 5)]
    structs = pa.array([{"a": 1, "b": "xy"}], pa.struct([("a", pa.int64()), ("b", pa.string())]))
    assert row_sizes(structs).tolist() == [8 + 6]
    assert size_of(pa.array([True] * 8)) < LARGEST_VALUE
