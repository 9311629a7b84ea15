"""Steps that look at one record at a time, at work."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from operators.core.chunks import Catch, chunk_of, letters, task_of
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.expressions.function import Function
from potok.operators.core.operator import Operator, Task
from potok.operators.stateless import stateless
from potok.records.schemas.declared_schema import declared_schema


def function(call: Any) -> Function:
    return Function.of(call, (1, 2))


def run(operator: Operator, keys: Any, values: Any) -> list[tuple[Any, Any]]:
    caught = Catch()
    operator.downstream.append(caught)
    operator.push(chunk_of(keys, values))
    operator.finish()
    return caught.rows()


@pytest.mark.parametrize(("negate", "kept"), [(False, [2]), (True, [1])])
def test_a_filter_drops_records_and_those_whose_predicate_raises_are_dead_letters(
    negate: bool, kept: list[int]
) -> None:
    task = task_of()
    operator = stateless.Filter("f", task, function(lambda v: 6 / v < 4), None, negate)
    assert run(operator, ["a", "b", "c"], [0, 1, 2]) == [("b" if v == 1 else "c", v) for v in kept]
    assert [(letter["step"], letter["reason"], letter["key"]) for letter in letters(task)] == [("f", "error", b"a")]


def branch(task: Task) -> tuple[stateless.Branch, list[Catch]]:
    arms = [(function(lambda v: 6 % v == 0), None), (function(lambda v: v > 3), None)]
    operator = stateless.Branch("b", task, arms)
    caught = [Catch(), Catch(), Catch()]
    for index, catch in enumerate(caught):
        operator.outputs[index] = [catch]  # type: ignore[list-item]
    return operator, caught


def test_a_record_goes_to_the_first_matching_branch_or_to_the_default() -> None:
    task = task_of()
    operator, caught = branch(task)
    operator.push(chunk_of(list("abcdef"), [0, 2, 4, 5, 6, -4]))
    assert [[value for _, value in catch.rows()] for catch in caught] == [[2, 6], [4, 5], [-4]]
    assert [letter["value"] for letter in letters(task)] == [b"0"]


def test_all_records_may_go_to_one_arm() -> None:
    operator, caught = branch(task_of())
    operator.push(chunk_of(["a", "b"], [2, 3]))
    assert [len(catch.rows()) for catch in caught] == [2, 0, 0]


def test_a_map_replaces_key_and_value() -> None:
    operator = stateless.Map("m", task_of(), function(lambda k, v: (v, k)), None, None, None)
    assert run(operator, ["a"], [1]) == [(1, "a")]


@pytest.mark.parametrize("result", [5, (1,), (1, 2, 3), None, "ab", {"a": 1, "b": 2}])
def test_a_map_that_returns_no_pair_is_an_error(result: Any) -> None:
    task = task_of()
    operator = stateless.Map("m", task, function(lambda v: result), None, None, None)
    assert run(operator, ["a"], [1]) == []
    assert letters(task)[0]["reason"] == "error"


def test_results_must_fit_the_declared_types() -> None:
    task = task_of()
    schema = declared_schema("n bigint")
    operator = stateless.MapValues("m", task, function(lambda v: {"n": v}), None, schema)
    assert run(operator, ["a", "b"], [1, "x"]) == [("a", {"n": 1})]
    assert len(letters(task)) == 1


def test_a_key_is_replaced_and_the_bytes_of_the_value_stay() -> None:
    operator = stateless.SelectKey("s", task_of(), function(lambda v: v * 2), None, None)
    caught = Catch()
    operator.downstream.append(caught)
    operator.push(chunk_of(["a"], [1]))
    assert caught.rows() == [(2, 1)] and caught.chunks[0].intact


def flat(task: Task, call: Any, *, values_only: bool = True, value: Any = None) -> stateless.FlatMap:
    return stateless.FlatMap("f", task, function(call), None, declared_schema(value), values_only=values_only)


@pytest.mark.parametrize(
    "call", [lambda v: [v, v + 1], lambda v: (v, v + 1), lambda v: (v + n for n in range(2)), lambda v: {v, v + 1}]
)
def test_any_iterable_is_several_values(call: Any) -> None:
    assert run(flat(task_of(), call), ["a"], [1]) == [("a", 1), ("a", 2)]


def test_no_records_are_accepted_and_none_is_an_error() -> None:
    task = task_of()
    assert run(flat(task, lambda v: [] if v else None), ["a", "b"], [0, 1]) == []
    assert [letter["key"] for letter in letters(task)] == [b"a"]


def broken(v: int) -> Any:
    yield v
    raise ValueError("half way")


def test_an_iterator_that_breaks_half_way_gives_nothing() -> None:
    task = task_of()
    assert run(flat(task, broken), ["a"], [1]) == []
    assert "half way" in letters(task)[0]["error"]


def test_pairs_get_their_own_keys() -> None:
    operator = flat(task_of(), lambda k, v: [(k + "1", v), (k + "2", v)], values_only=False)
    assert run(operator, ["a"], [1]) == [("a1", 1), ("a2", 1)]


@pytest.mark.parametrize("pairs", [["ab"], [{"a": 1, "b": 2}], [(1, 2, 3)], [5]])
def test_a_flat_map_of_no_pairs_is_an_error(pairs: Any) -> None:
    task = task_of()
    assert run(flat(task, lambda v: pairs, values_only=False), ["a"], [1]) == []
    assert letters(task)[0]["reason"] == "error"


def test_several_values_must_fit_the_declared_type() -> None:
    task = task_of()
    assert ("b", 3) in run(flat(task, lambda v: v, value=int), ["a", "b"], [[1, "x"], [3]])
    assert [letter["key"] for letter in letters(task)] == [b"a"]


def test_a_peek_looks_and_passes_on() -> None:
    seen: list[int] = []
    task = task_of()

    def look(v: int) -> None:
        seen.append(10 // v)

    assert run(stateless.Peek("p", task, function(look)), ["a", "b"], [0, 5]) == [("b", 5)]
    assert seen == [2] and len(letters(task)) == 1


@pytest.mark.parametrize("value", [None, "x string, y string"])
def test_a_map_to_a_dict_of_two_is_an_error_traced_or_not(value: Any) -> None:
    builder = StreamsBuilder("q")
    builder.stream("a", value=value).map(lambda k, v: {"p": v["x"], "q": v["y"]}).to("out")
    with InProcess(builder) as driver:
        driver.send("a", {"x": "1", "y": "2"}, "k", timestamp=1)
        driver.run()
        assert driver.read("out") == []
        assert driver.reasons() == [("a.map", "error")]


def test_streams_of_other_types_merge_and_are_counted() -> None:
    builder = StreamsBuilder("q")
    typed, dynamic = builder.stream("a"), builder.stream("b").select_key(lambda v: v["u"])
    typed.merge(dynamic).group_by_key().count(name="n")
    with InProcess(builder) as driver:
        driver.send("a", {}, "k", timestamp=1)
        driver.send("b", {"u": "k"}, "z", timestamp=1)
        driver.run()
        assert driver.table("n").all() == {"k": 2}


def test_values_of_other_types_merge_and_are_collected() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a", value=int).merge(builder.stream("b", value=str)).group_by_key().collect_list(name="l")
    with InProcess(builder) as driver:
        driver.send("a", 1, "k", timestamp=1)
        driver.send("b", b"two", "k", timestamp=1)
        driver.run()
        assert driver.table("l").all() == {"k": [1, "two"]}


@pytest.mark.parametrize("batch_records", [1, None])
def test_what_a_dynamic_value_is_written_as_does_not_depend_on_its_neighbours(batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    builder.stream("a").map(lambda k, v: (v, v)).to("out")
    with InProcess(builder) as driver:
        for value in ("text", 5):
            driver.send("a", value, "k", timestamp=1)
        driver.run(batch_records)
        assert [(row.raw_key, row.raw_value) for row in driver.read("out")] == [(b"text", b'"text"'), (b"5", b"5")]


def test_a_sink_of_another_format_writes_all_fields() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a", value="x string, y string").filter(lambda v: v["x"] == "1").to("out", value_format="delimited")
    with InProcess(builder) as driver:
        driver.send("a", {"x": "1", "y": "2"}, "k", timestamp=1)
        driver.run()
        assert [row.raw_value for row in driver.read("out")] == [b"1,2"]


def test_headers_are_kept_and_unchanged_values_are_written_as_read() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a", value="x string").filter(lambda v: v["x"] == "1").repartition().to("out")
    with InProcess(builder) as driver:
        driver.send("a", {"x": "1"}, "k", timestamp=5, headers={"trace": b"7"})
        driver.run()
        (row,) = driver.read("out")
        assert (row.key, row.value, row.timestamp_ms, row.headers) == ("k", {"x": "1"}, 5, (("trace", b"7"),))


def test_columns_of_arrow_and_of_python_return_the_same(tmp_path: Any) -> None:
    for value in ("n bigint", None):
        builder = StreamsBuilder("q")
        stream = builder.stream("a", value=value).filter(lambda v: v["n"] % 2 == 1)
        stream.map(lambda k, v: (v["n"] * 2, v["n"] // 2)).to("out")
        with InProcess(builder) as driver:
            for n in range(5):
                driver.send("a", {"n": n}, "k", timestamp=n)
            driver.run()
            assert [(row.raw_key, row.value) for row in driver.read("out")] == [(b"2", 0), (b"6", 1)], value


def test_pa_is_only_for_typed_streams() -> None:
    operator = stateless.MapValues("m", task_of(), function(lambda v: v["n"] + 1), None, None)
    assert run(operator, pa.array(["a"]), pa.array([{"n": 1}])) == [("a", 2)]
