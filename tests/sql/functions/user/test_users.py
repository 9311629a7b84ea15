"""`@potok.function`: what annotations mean, how functions are called, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from potok.sql.errors import SqlTypeError
from potok.sql.functions import registry
from potok.sql.functions.function import AggregateFunction, Context, ScalarFunction, TableFunction
from potok.sql.functions.user.users import MissingAnnotation, UnusableAnnotation, UnusableFunction, function
from potok.sql.types import BIGINT, DOUBLE, INT, VARCHAR, decimal
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


def test_a_function_is_called_by_its_name_in_the_next_expression() -> None:
    @function
    def shout(text: str, marks: int = 1) -> str:
        """In capitals.

        With marks.
        """
        return text.upper() + "!" * marks

    assert answer("SHOUT(t, n)", [("T", "VARCHAR", ["a", NULL, "b"]), ("N", "INT", [2, 1, NULL])]).values == [
        "A!!",
        None,
        None,
    ]
    assert answer("shout('x')").values == ["X!"]
    assert shout("b", 3) == "B!!!"
    found = known("SHOUT")
    assert isinstance(found, ScalarFunction)
    assert (found.summary, found.family) == ("In capitals.", "user")
    assert found.overloads[0].signature == "SHOUT(text VARCHAR[, marks BIGINT])"


def test_a_function_may_have_another_name_in_sql() -> None:
    @function(name="twice_as_much", deterministic=False)
    def double(x: float) -> float:
        return x * 2

    assert answer("TWICE_AS_MUCH(3)").values == [6.0]
    found = known("TWICE_AS_MUCH")
    assert isinstance(found, ScalarFunction)
    assert not found.deterministic


def test_a_wrong_argument_is_refused_with_the_signature() -> None:
    @function
    def half(x: float) -> float:
        return x / 2

    with pytest.raises(SqlTypeError, match=r"HALF\(x DOUBLE\)"):
        answer("HALF('a')")
    with pytest.raises(SqlTypeError):
        answer("HALF(1, 2)")


def test_null_is_given_only_to_who_wants_it() -> None:
    @function
    def shown(x: int | None, y: int) -> str:
        return f"{x} {y}"

    assert computed("SHOWN", [(BIGINT, [1, None, 1]), (BIGINT, [2, 2, None])]).to_pylist() == ["1 2", "None 2", None]


def test_a_row_for_which_the_function_raises_is_null_and_noted() -> None:
    @function
    def inverse(x: int) -> float:
        return 1 / x

    context = Context()
    assert computed("INVERSE", [(BIGINT, [2, 0])], context).to_pylist() == [0.5, None]
    assert context.failures == {1: "ZeroDivisionError: division by zero"}


def test_a_result_of_another_type_is_null_and_noted() -> None:
    @function
    def wrong(x: int) -> int:
        return 2**70 if x else "text"  # type: ignore[return-value]

    context = Context()
    assert computed("WRONG", [(BIGINT, [1, 0])], context).to_pylist() == [None, None]
    assert sorted(context.failures) == [0, 1]


def test_any_number_of_arguments_may_be_taken() -> None:
    @function
    def total(*values: int) -> int:
        return sum(values)

    assert answer("TOTAL(1, 2, 3)").values == [6]
    found = known("TOTAL")
    assert isinstance(found, ScalarFunction)
    assert found.overloads[0].signature == "TOTAL([values BIGINT, ...])"


def test_a_function_of_columns_is_called_once() -> None:
    calls = []

    @function(columns=True)
    def added(x: int, y: int) -> float:
        calls.append(1)
        return pc.add(x, y)

    assert computed("ADDED", [(BIGINT, [1, None, 3]), (BIGINT, [1, 2, 3])]).to_pylist() == [2.0, None, 6.0]
    assert len(calls) == 1


def test_a_function_of_columns_that_returns_something_else_makes_all_rows_null() -> None:
    @function(columns=True)
    def short(x: int) -> int:
        return x[:1]  # type: ignore[index]

    context = Context()
    assert computed("SHORT", [(BIGINT, [1, 2])], context).to_pylist() == [None, None]
    assert list(context.failures) == [0, 1]
    assert "1 values for 2 rows" in context.failures[0]


def test_a_generator_is_a_table_function() -> None:
    @function
    def words(text: str) -> Iterator[str]:
        yield from text.split()

    assert isinstance(known("WORDS"), TableFunction)
    found = computed("WORDS", [(VARCHAR, ["a b", "", None])])
    assert found.to_pylist() == [["a", "b"], [], []]


def test_a_function_that_returns_lists_is_a_table_function_if_it_says_so() -> None:
    @function(table=True)
    def grid(n: int) -> list[Point]:
        return [Point(x, None) for x in range(n)]

    assert isinstance(known("GRID"), TableFunction)
    assert computed("GRID", [(BIGINT, [2])]).to_pylist() == [[{"X": 0, "Y": None}, {"X": 1, "Y": None}]]


def test_a_class_is_an_aggregate() -> None:
    @function
    class Product:
        """The product of the values."""

        def start(self) -> float:
            return 1.0

        def add(self, state: float, x: float) -> float:
            return state * x

        def undo(self, state: float, x: float) -> float:
            return state / x

        def merge(self, left: float, right: float) -> float:
            return left * right

        def result(self, state: float) -> float:
            return state

    found = known("PRODUCT")
    assert isinstance(found, AggregateFunction)
    assert found.summary == "The product of the values."
    (overload,) = found.overloads
    assert overload.signature == "PRODUCT(x DOUBLE)"
    how = overload.accept([INT], [])
    assert how is not None
    assert (how.arguments, how.result) == ([DOUBLE], DOUBLE)
    state = how.fold.add(how.fold.add(how.fold.start(), 3.0), None)
    assert how.fold.result(state) == 3.0
    assert how.fold.undo is not None
    assert how.fold.undo(state, 3.0) == 1.0
    assert how.fold.merge is not None
    assert how.fold.merge(state, 2.0) == 6.0
    assert overload.accept([VARCHAR], []) is None


def test_what_an_aggregate_is_made_with_are_literals() -> None:
    @function
    class Sample:
        def __init__(self, size: int, scale: float = 1.0) -> None:
            self.size, self.scale = size, scale

        def start(self) -> list[float]:
            return []

        def add(self, state: list[float], x: float, y: Point | None) -> list[float]:
            return [*state, x * self.scale + (y.x if y else 0)][: self.size]

        def result(self, state: list[float]) -> list[float]:
            return state

    found = known("SAMPLE")
    assert isinstance(found, AggregateFunction)
    (overload,) = found.overloads
    assert overload.signature == "SAMPLE(x DOUBLE, y STRUCT<X BIGINT, Y DOUBLE>, size BIGINT[, scale DOUBLE])"
    assert overload.columns_among(4) == 2
    struct = pa.struct([("X", BIGINT), ("Y", DOUBLE)])
    how = overload.accept([DOUBLE, struct, INT, decimal(2, 1)], [2, Decimal("0.5")])
    assert how is not None
    state = how.fold.start()
    for value, point in ((2.0, None), (None, None), (4.0, {"X": 1, "Y": None}), (6.0, None)):
        state = how.fold.add(state, value, point)
    assert how.fold.result(state) == [1.0, 3.0]
    assert how.fold.undo is None
    assert how.fold.merge is None
    assert how.fold.order_dependent
    assert overload.accept([DOUBLE, struct], []) is None


def test_a_parameter_without_a_type_is_named() -> None:
    with pytest.raises(MissingAnnotation, match=r'parameter "y" of .*add.* has no type') as caught:

        @function
        def add(x: int, y) -> int:  # type: ignore[no-untyped-def]
            return x

    assert caught.value.at is not None
    assert caught.value.at.file == __file__
    assert "y: int" in caught.value.hint


def test_a_result_without_a_type_is_named() -> None:
    with pytest.raises(MissingAnnotation, match="the result of"):

        @function
        def nothing(x: int):  # type: ignore[no-untyped-def]
            return x


def test_a_table_function_that_returns_no_list_is_refused() -> None:
    with pytest.raises(UnusableAnnotation, match="the result") as caught:

        @function(table=True)
        def one(x: int) -> int:
            return x

    assert "list[T]" in caught.value.hint


def test_a_parameter_that_only_has_a_name_is_refused() -> None:
    with pytest.raises(UnusableFunction, match='"by"'):

        @function
        def moved(x: int, *, by: int) -> int:
            return x + by


def test_a_class_that_is_not_an_aggregate_is_refused() -> None:
    with pytest.raises(UnusableFunction, match="no method add"):

        @function
        class Half:
            def start(self) -> int:
                return 0


def test_a_function_that_is_defined_again_replaces_the_first() -> None:
    @function
    def version() -> int:
        return 1

    @function(name="version")
    def later() -> int:
        return 2

    assert answer("VERSION()").values == [2]


PROGRAM = """
import sys, cloudpickle
from dataclasses import dataclass
from potok.sql.functions.user.users import function
from potok.sql.functions import registry

@dataclass
class Point:
    x: int

OFFSET = 100

@function
def moved(point: Point) -> Point:
    return Point(point.x + OFFSET)

@function
class Longest:
    def start(self) -> str:
        return ""
    def add(self, state: str, text: str) -> str:
        return max(state, text, key=len)
    def result(self, state: str) -> str:
        return state

known = registry.users_functions()
how = known["LONGEST"].overloads[0].accept([__import__("pyarrow").string()], [])
sys.stdout.buffer.write(cloudpickle.dumps((known["MOVED"].overloads[0], how)))
"""

WORKER = """
import sys, pickle, pyarrow as pa
from potok.sql.functions.function import Context
overload, how = pickle.loads(sys.stdin.buffer.read())
struct = pa.struct([("X", pa.int64())])
accepted = overload.accept([struct])
print(overload.compute([pa.array([{"X": 1}], struct)], 1, accepted.result, Context()).to_pylist())
print(how.fold.result(how.fold.add(how.fold.add(how.fold.start(), "ab"), "c")))
"""


def test_a_function_of_the_main_program_reaches_another_process(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    sent = subprocess.run([sys.executable, str(program)], capture_output=True, check=True, timeout=60).stdout
    worker = [sys.executable, "-c", WORKER]
    seen = subprocess.run(worker, input=sent, capture_output=True, check=True, timeout=60).stdout.decode()
    assert seen.splitlines() == ["[{'X': 101}]", "ab"]
