"""What changed between two versions of a topology, and what fits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.topology.compare import Change, StateDoesNotFit, compare, shape_of
from potok.topology.inference.infer import infer
from potok.topology.nodes.windows import tumbling

Build = Callable[[StreamsBuilder], object]
VALUE = "user string, city string, amount double"


def shape(build: Build) -> dict[str, Any]:
    builder = StreamsBuilder("q")
    build(builder)
    topology = builder.build()
    return json.loads(json.dumps(shape_of(topology, infer(topology))))  # type: ignore[no-any-return]


def changes(old: Build, new: Build) -> list[Change]:
    return compare(shape(old), shape(new))


def misfits(old: Build, new: Build) -> list[str]:
    return sorted({change.step for change in changes(old, new) if not change.fits})


def counted(builder: StreamsBuilder) -> None:
    builder.stream("orders", value=VALUE).group_by("user").count(name="n")


def test_nothing_changed() -> None:
    assert changes(counted, counted) == []


@pytest.mark.parametrize(
    "new",
    [
        lambda b: b.stream("orders", value=VALUE).group_by("user").sum("amount", name="n"),
        lambda b: b.stream("orders", value=VALUE).group_by("amount").count(name="n"),
        lambda b: b.stream("orders", value=VALUE).group_by("user").windowed_by(tumbling(5)).count(name="n"),
        lambda b: b.stream("orders", value=VALUE).to_table(name="n"),
        lambda b: b.table("orders", name="n"),
    ],
    ids=["kind", "key", "window", "to_table", "table"],
)
def test_another_layout_does_not_fit(new: Build) -> None:
    assert misfits(counted, new) == ["n"]


def test_another_size_of_window_does_not_fit_but_another_grace_does() -> None:
    def build(size: int, grace: int) -> Build:
        window = tumbling(size, grace=grace)
        return lambda b: b.stream("orders").group_by_key().windowed_by(window).count(name="n")

    assert misfits(build(5, 0), build(6, 0)) == ["n"]
    assert misfits(build(5, 0), build(5, 3)) == []


def test_an_aggregator_with_the_same_cell_layout_is_compatible() -> None:
    def build(factor: float) -> Build:
        return lambda b: (
            b.stream("o", value=VALUE)
            .group_by("user")
            .aggregate(0.0, lambda k, v, agg: agg + v["amount"] * factor, name="n")
        )

    assert misfits(build(1.0), build(2.0)) == []


def test_an_aggregator_that_can_no_longer_be_traced_does_not_fit() -> None:
    def traced(b: StreamsBuilder) -> None:
        b.stream("o", value=VALUE).group_by("user").aggregate(0.0, lambda k, v, agg: agg + v["amount"], name="n")

    def python(b: StreamsBuilder) -> None:
        b.stream("o", value=VALUE).group_by("user").aggregate(0.0, lambda k, v, agg: eval("agg"), name="n")

    assert misfits(traced, python) == ["n"]


def test_a_table_by_position_does_not_become_one_by_event_time() -> None:
    def by_position(b: StreamsBuilder) -> None:
        b.stream("o", value=VALUE).to_table(name="t")

    def by_time(b: StreamsBuilder) -> None:
        b.stream("o", value=VALUE).select_key("user").to_table(name="t")

    assert misfits(by_position, by_time) == ["t"]


@pytest.mark.parametrize(
    "table",
    [
        lambda b, value: b.table("o", value=value, name="t"),
        lambda b, value: b.stream("o", value=value).to_table(name="t"),
        lambda b, value: b.stream("o", value=value).group_by_key().latest(name="t"),
        lambda b, value: b.stream("o", value=value).group_by_key().collect_list(name="t"),
    ],
    ids=["table", "to_table", "latest", "collect_list"],
)
def test_rows_of_another_type_do_not_fit(table: Callable[[StreamsBuilder, object], object]) -> None:
    assert misfits(lambda b: table(b, str), lambda b: table(b, int)) == ["t"]


def test_tables_come_and_go() -> None:
    def other(b: StreamsBuilder) -> None:
        b.stream("orders", value=VALUE).group_by("user").count(name="other")

    found = changes(counted, other)
    assert [(change.step, change.fits) for change in found] == [("n", True), ("other", True)]
    assert "no longer" in found[0].what and "new table" in found[1].what


def test_steps_and_topics_come_and_go() -> None:
    def more(b: StreamsBuilder) -> None:
        counted(b)
        b.stream("returns").to("out")

    assert {change.step for change in changes(counted, more)} == {"returns", "returns.to.out"}
    assert all(change.fits for change in changes(more, counted))


def filtered(predicate: Callable[[Any], Any]) -> Build:
    return lambda b: b.stream("o", value=VALUE).filter(predicate).to("out")


def test_an_edited_lambda_is_reported_and_fits() -> None:
    (change,) = changes(filtered(lambda v: v["amount"] > 1), filtered(lambda v: v["amount"] > 2))
    assert change.step == "o.filter" and change.fits and "function changed" in change.what


def test_another_field_to_group_by_is_reported() -> None:
    def by_city(b: StreamsBuilder) -> None:
        b.stream("orders", value=VALUE).group_by("city").count(name="n")

    assert [change.step for change in changes(counted, by_city)] == ["orders.group_by"]


def test_another_captured_value_is_reported() -> None:
    def over(limit: float) -> Build:
        return filtered(lambda v: v["amount"] > limit)

    assert [change.step for change in changes(over(1.0), over(2.0))] == ["o.filter"]


def test_an_edited_branch_is_reported() -> None:
    def build(limit: int) -> Build:
        one: Callable[[Any], Any] = (lambda v: v["amount"] > 1) if limit == 1 else (lambda v: v["amount"] > 2)
        return lambda b: b.stream("o", value=VALUE).branch(one)[0].to("out")

    assert [change.step for change in changes(build(1), build(2))] == ["o.branch"]


def read(value: object, **options: Any) -> Build:
    return lambda b: b.stream("orders", value=value, **options).to("out")


DEAD = "; records that do not decode so are dead letters from here on"
CHANGED = 'field "a" of its value was {} and is {}' + DEAD
NEW = 'its value has a new field "{}" {}' + DEAD


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a double", "a bigint", [CHANGED.format("double", "bigint")]),
        ("a double", "a double not null", [CHANGED.format("double", "double not null")]),
        ("a int not null", "a int", [CHANGED.format("int not null", "int")]),
        ("a int not null", "a int not null default 0", [CHANGED.format("int not null", "int not null default 0")]),
        ("a array<int>", "a array<int not null>", [CHANGED.format("array<int>", "array<int not null>")]),
        ("a struct<b: int>", "a struct<b: string>", [CHANGED.format("struct<b: int>", "struct<b: string>")]),
        ("a int, b int", "a int, c int", ['its value has no field "b" any more', NEW.format("c", "int")]),
        ("a int, b int", "b int, a int", ["the fields of its value were a, b and are b, a" + DEAD]),
        ("a int", None, ["its value was a int and is dynamic" + DEAD]),
        (int, str, ["its value was read as json and is read as text", "its value was bigint and is string" + DEAD]),
        ("a int", "a int", []),
    ],
)
def test_another_schema_of_a_source_is_reported(old: object, new: object, expected: list[str]) -> None:
    found = changes(read(old), read(new))
    assert all((change.step, change.fits) == ("orders", True) for change in found)
    assert [change.what for change in found] == expected


def test_another_format_key_or_time_of_a_source_is_reported() -> None:
    found = changes(read("a int"), read("a int", key=int, value_format="csv", timestamp="a"))
    assert [change.what for change in found] == [
        "its key was read as text and is read as json",
        "its key was string and is bigint" + DEAD,
        "its value was read as json and is read as delimited" + DEAD,
        'its event time was the record timestamp and is the field "a"',
    ]
    assert changes(read("a int", value_format="csv"), read("a int", value_format="DELIMITED")) == []
    edited = changes(read("a int", timestamp=lambda v: v["a"]), read("a int", timestamp=lambda v: v["a"] * 2))
    assert [change.what for change in edited] == ["the function that extracts its event time changed"]


def test_a_shape_that_was_written_without_sources_has_no_changes_of_them() -> None:
    old, new = shape(read("a int")), shape(read("a double"))
    del old["steps"]["orders"]["source"]
    assert compare(old, new) == []


PROGRAM = """
import json
from potok.dsl.builder import StreamsBuilder
from potok.topology.compare import shape_of
from potok.topology.inference.infer import infer
padding = [object() for _ in range({padding})]
b = StreamsBuilder("q")
b.stream("o").map_values(lambda v: [x for x in v] + [(lambda y: y)(1)]).to("out")
t = b.build()
print(json.dumps(shape_of(t, infer(t))))
"""


def test_the_same_program_in_another_process_has_the_same_shape() -> None:
    def run(padding: int) -> Any:
        command = [sys.executable, "-c", PROGRAM.format(padding=padding)]
        return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    assert compare(run(0), run(100_000)) == []


def test_the_refusal_names_the_query_the_step_and_the_way_out() -> None:
    error = StateDoesNotFit("q", [Change("n", "its kind was count and is sum", False)])
    assert '"q"' in error.message and '"n"' in error.message and "count" in error.message
    assert "name=" in error.hint


def test_what_decides_what_is_taken_back_cannot_be_edited() -> None:
    def by(field: str) -> Build:
        return lambda builder: builder.table("users", value=VALUE).group_by(field).count(name="n")

    def above(least: int) -> Build:
        return lambda builder: builder.table("users", value=VALUE).filter(lambda v: v["amount"] > least, name="rich")

    def reported(least: int) -> Build:
        return lambda builder: (
            builder.table("users", value=VALUE).filter(lambda v: v["amount"] > least).to_stream().to("out")
        )

    assert misfits(by("user"), by("city")) == ["users.group_by"]
    assert misfits(above(1), above(2)) == ["rich"]
    assert misfits(reported(1), reported(2)) == []
