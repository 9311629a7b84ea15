"""An expression that takes too long fails for its record, and for no other."""

from __future__ import annotations

import pyarrow as pa
import pytest

from potok.compat.java import time_limit
from potok.compat.java.regex import JavaRegexError, compiled
from potok.sql.functions.function import Context
from potok.sql.functions.registry import all_functions
from potok.sql.functions.text import regex
from potok.sql.functions.text.regex import each_text

SLOW = "(?:(?:a|aa)+)+$"
EVIL = "a" * 60 + "b"


def computed(name: str, *columns: list[str]) -> tuple[list[object], Context]:
    overload, context = all_functions()[name].overloads[0], Context()
    arrays = [pa.array(column) for column in columns]
    accepted = overload.accept([array.type for array in arrays])  # type: ignore[union-attr]
    assert accepted is not None
    found = overload.compute(arrays, len(columns[0]), accepted.result, context)  # type: ignore[union-attr]
    return found.to_pylist(), context


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "TEXT_S", 0.05)
    monkeypatch.setattr(regex, "ROW_S", 0.05)
    monkeypatch.setattr(regex, "COLUMN_S", 0.1)
    monkeypatch.setattr(regex, "LEAST_S", 0.01)


@pytest.mark.usefixtures("impatient")
def test_a_search_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(JavaRegexError, match="takes too long with a text of 61 characters"):
        compiled(SLOW).search(EVIL)


@pytest.mark.usefixtures("impatient")
def test_one_record_fails_and_the_others_do_not() -> None:
    found, context = computed("REGEXP_EXTRACT", [SLOW] * 3, ["aa", EVIL, "xaaa"])
    assert found == ["aa", None, "aaa"]
    assert list(context.failures) == [1]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("REGEXP_EXTRACT_ALL", ([SLOW], [EVIL])),
        ("REGEXP_REPLACE", ([EVIL], [SLOW], ["x"])),
        ("REGEXP_SPLIT_TO_ARRAY", ([EVIL], [SLOW])),
    ],
)
def test_no_function_waits_for_ever(name: str, columns: tuple[list[str], ...]) -> None:
    found, context = computed(name, *columns)
    assert (found, list(context.failures)) == ([None], [0])


def test_slow_records_have_less_and_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(regex.time, "monotonic", lambda: now[0])
    given: list[float] = []

    def slow(text: str) -> str:
        given.append(round(time_limit.time_left(), 3))
        now[0] += time_limit.time_left()
        return text

    each_text(slow)([pa.array(["x"] * 8)], 8, pa.string(), Context())
    assert given == [1.0, 1.0, 1.0, 1.0, 1.0, 0.01, 0.01, 0.01]
