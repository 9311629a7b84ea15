"""What annotations of a user's function mean in SQL."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import pyarrow as pa
import pytest

from potok.sql.errors import SqlTypeError
from potok.sql.functions import registry
from potok.sql.functions.function import ScalarFunction
from potok.sql.functions.user.users import UnusableAnnotation, function
from potok.sql.types import TIMESTAMP, decimal, type_name
from sql.columns import answer
from sql.users_functions import computed, known

NULL = {"null": True}


@dataclass
class Point:
    x: int
    y: float | None = None


@pytest.fixture(autouse=True)
def _only_own_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_users", {})


@pytest.mark.parametrize(
    ("annotation", "type_", "value"),
    [
        (bool, "BOOLEAN", True),
        (int, "BIGINT", 2**40),
        (float, "DOUBLE", 0.5),
        (str, "VARCHAR", "ö"),
        (bytes, "BYTES", b"\x00"),
        (dt.date, "DATE", dt.date(2024, 2, 29)),
        (dt.time, "TIME", dt.time(1, 2, 3, 4000)),
        (dt.datetime, "TIMESTAMP", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        (Decimal, "DECIMAL(38, 18)", Decimal("1.500000000000000000")),
        (Annotated[Decimal, pa.decimal128(4, 2)], "DECIMAL(4, 2)", Decimal("1.50")),
        (Annotated[int, pa.int32()], "INTEGER", 7),
        (list[int], "ARRAY<BIGINT>", [1, None]),
        (list[list[str]], "ARRAY<ARRAY<VARCHAR>>", [["a"], []]),
        (dict[str, int | None], "MAP<VARCHAR, BIGINT>", [("a", 1), ("b", None)]),
        (int | None, "BIGINT", 1),
    ],
)
def test_an_annotation_is_a_type(annotation: Any, type_: str, value: Any) -> None:
    def same(x: Any) -> Any:
        return x

    same.__annotations__ = {"x": annotation, "return": annotation}
    function(same)
    found = known("SAME")
    assert isinstance(found, ScalarFunction)
    assert found.overloads[0].signature == f"SAME(x {type_})"
    accepted = found.overloads[0].accept([pa.null()])
    assert accepted is not None
    assert type_name(accepted.result) == type_
    assert computed("SAME", [(accepted.result, [value, None])]).to_pylist() == [value, None]


def test_a_dataclass_is_a_struct_by_its_fields_whatever_their_case() -> None:
    @function
    def moved(points: list[Point], by: int) -> list[Point]:
        return [Point(point.x + by, point.y) for point in points]

    found = answer(
        "MOVED(p, 10)",
        [("P", "ARRAY<STRUCT<`y` DOUBLE, Z INT, X INT>>", [[{"y": 0.5, "X": 1}, {"X": 2}], NULL])],
    )
    assert type_name(found.type) == "ARRAY<STRUCT<X BIGINT, Y DOUBLE>>"
    assert found.values == [[{"X": 11, "Y": 0.5}, {"X": 12, "Y": None}], None]


def test_a_struct_without_a_field_of_the_dataclass_is_refused() -> None:
    @function
    def norm(point: Point) -> float:
        return float(point.x)

    assert answer("NORM(STRUCT(x := 1, y := 2.5))").values == [1.0]
    with pytest.raises(SqlTypeError):
        answer("NORM(STRUCT(x := 1))")


def test_decimals_of_every_scale_are_taken_and_results_rounded() -> None:
    @function
    def third(x: Decimal) -> Annotated[Decimal, pa.decimal128(5, 2)]:
        return x / 3

    assert computed("THIRD", [(decimal(4, 1), [Decimal("5.0")])]).to_pylist() == [Decimal("1.67")]
    assert answer("THIRD(5)").values == [Decimal("1.67")]


def test_instants_are_in_utc_and_have_whole_milliseconds() -> None:
    @function
    def later(at: dt.datetime) -> dt.datetime:
        assert at.tzinfo is not None
        return (at + dt.timedelta(microseconds=1500)).replace(tzinfo=None)

    found = computed("LATER", [(TIMESTAMP, [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)])])
    assert found.to_pylist()[0].isoformat() == "2024-01-01T00:00:00.001000+00:00"


@pytest.mark.parametrize("annotation", [object, set[int], int | str, list, dict[Point, int], Any, tuple[int, int]])
def test_a_type_that_sql_has_not_is_named(annotation: Any) -> None:
    def odd(x: int) -> int:
        return x

    odd.__annotations__["x"] = annotation
    with pytest.raises(UnusableAnnotation, match=r'parameter "x" of .*odd') as caught:
        function(odd)
    assert "Decimal" in caught.value.hint
