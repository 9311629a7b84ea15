from __future__ import annotations

import pytest

from potok.statements.messages import counted, damage_message, mismatch_message, sql_type
from potok.topology.compare import Change


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (
            Change(
                "T", "...", False, "cells", "columns (count int64) as C", "columns (count int64, sum double) as C, S"
            ),
            "its aggregates were COUNT BIGINT as C and would be COUNT BIGINT, SUM DOUBLE as C, S",
        ),
        (
            Change("T", "...", False, "value", "struct<C: int64>", "struct<C: int64, L: list<item: int32>>"),
            "its columns were C BIGINT and would be C BIGINT, L ARRAY<INTEGER>",
        ),
        (Change("T", "", False, "value", "none", "struct<C: int64>"), "its rows would be stored differently"),
        (Change("T", "...", False, "key", "string", "int32"), "its key was VARCHAR and would be INTEGER"),
        (
            Change("T", "...", False, "cells", "objects", "columns (count int64)"),
            "its rows would be stored differently",
        ),
        (Change("T.join", "...", False, "key", "string", "int32"), "T.join: its key was VARCHAR and would be INTEGER"),
        (Change("T.more", "is odd", False), "T.more: is odd"),
    ],
)
def test_an_incompatible_change_is_described_in_terms_of_statements(change: Change, reported: str) -> None:
    assert mismatch_message(change, "T") == reported


@pytest.mark.parametrize(
    ("arrow", "sql"),
    [
        ("map<string, struct<a: timestamp[ms], b: bool>>", "MAP<VARCHAR, STRUCT<a TIMESTAMP, b BOOLEAN>>"),
        ("struct<double: decimal128(4, 2), my_string: binary>", "STRUCT<double DECIMAL(4, 2), my_string BYTES>"),
        ("dynamic", "dynamic"),
    ],
)
def test_a_type_is_written_as_statements_write_it(arrow: str, sql: str) -> None:
    assert sql_type(arrow) == sql


def test_one_of_something_is_one() -> None:
    assert [counted(number, "record") for number in (0, 1, 2)] == ["0 records", "1 record", "2 records"]


def test_unreadable_input_is_reported_in_one_line() -> None:
    why = {"B": "there is no function ZZ"}
    assert damage_message(why) == "B cannot be loaded: there is no function ZZ; --functions FILE loads functions"
    assert damage_message(why | dict.fromkeys("CD", "B is missing")).startswith("B, C and D cannot be loaded: ")
    assert damage_message(why | dict.fromkeys("CDEFGH", "")).startswith("B, C, D, E, F and 2 more cannot be loaded: ")
    assert "--functions" not in damage_message({"B": "the topic is gone"})
