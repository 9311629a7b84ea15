"""Cases of expressions in data files: what an expression gives for columns, or how it is refused."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from potok.sql.errors import SqlError
from sql.columns import answer, read, rendered, type_of


def cases_in(*files: Path) -> list[Any]:
    """The `[[case]]`s of the files as parameters of a test."""
    return [
        pytest.param(case, id=f"{file.stem}: {case.get('name', case['sql'])}")
        for file in files
        for case in tomllib.loads(file.read_text())["case"]
    ]


def run_case(case: dict[str, Any]) -> None:
    columns: Sequence[Any] = [(name.upper(), type_, values) for name, type_, values in case.get("columns", [])]
    if "error" in case:
        with pytest.raises(SqlError) as caught:
            answer(case["sql"], columns)
        assert case["error"] in str(caught.value.in_text(case["sql"]))
        assert caught.value.location is not None, "an error says where"
        assert case.get("kind", type(caught.value).__name__) == type(caught.value).__name__
        if "marks" in case:
            place = caught.value.location
            line = case["sql"].splitlines()[place.line - 1]
            assert line[place.column - 1 : place.column - 1 + place.length] == case["marks"]
        return
    found = answer(case["sql"], columns, now_ms=case.get("now", 0))
    if "type" in case:
        assert found.type == type_of(case["type"])
    wanted = [read(value, found.type) for value in case["expect"]]
    assert [rendered(v, found.type) for v in found.values] == [rendered(v, found.type) for v in wanted]
    if "failures" in case:
        assert sorted(found.failures) == case["failures"], found.failures
