"""Layouts decode cells without user code."""

from __future__ import annotations

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.snapshots.rows.layout import TableLayout, layouts_of, load_layouts
from potok.topology.inference.infer import infer
from potok.topology.nodes.windows import tumbling_ms


def layouts() -> dict[str, TableLayout]:
    builder = StreamsBuilder("q")
    orders = builder.stream("orders", value="user string, n bigint, x double")
    orders.group_by("n").avg("x", name="mean")
    orders.group_by("user").windowed_by(tumbling_ms(10, 0, 0)).aggregate(
        {"n": 0, "x": 1.5}, lambda v, agg: {"n": agg["n"] + v["n"], "x": agg["x"] + v["x"]}, name="both"
    )
    orders.group_by(lambda v: {"u": repr(v)}).collect_list(name="all")
    orders.to_table(name="rows")
    orders.select_key("user").to_table(name="by_time")
    builder.table("users", name="users")
    topology = builder.build()
    return load_layouts(layouts_of(topology, infer(topology)))


def test_every_table_has_a_layout() -> None:
    assert set(layouts()) == {"mean", "both", "all", "rows", "by_time", "users"}


def test_numbers_are_columns_and_everything_else_is_objects() -> None:
    found = layouts()
    assert [found[name].form for name in ("mean", "both", "all", "rows")] == [
        "columns",
        "columns",
        "objects",
        "objects",
    ]
    assert found["both"].slots == (("sum", "int64", 0), ("sum", "double", 1.5))
    assert found["both"].fields == ("n", "x") and found["both"].window_ms == 10


@pytest.mark.parametrize(
    ("table", "key"), [("mean", "int64"), ("both", "string"), ("all", "None"), ("rows", "string"), ("users", "string")]
)
def test_keys_have_the_type_they_were_grouped_by(table: str, key: str) -> None:
    assert str(layouts()[table].key_type) == key


def test_each_layout_has_a_codec() -> None:
    assert all(layout.codec() for layout in layouts().values())
