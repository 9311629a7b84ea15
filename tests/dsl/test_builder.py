"""Where a topology begins."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from potok.dsl.builder import StreamsBuilder
from potok.errors import PotokError, TopologyError
from potok.topology.nodes import StreamSource, TableSource


@dataclass
class Order:
    user: str
    amount: float


def source(**options: object) -> StreamSource:
    node = StreamsBuilder("q").stream("orders", **options).node  # type: ignore[arg-type]
    assert isinstance(node, StreamSource)
    return node


def test_a_source_has_text_keys_and_json_values_by_default() -> None:
    node = source()
    assert (node.key.format, node.value.format, node.value.schema) == ("text", "json", None)
    assert node.name == "orders"
    assert node.at is not None and node.at.file == __file__


@pytest.mark.parametrize("value", [Order, "user string, amount double"])
def test_a_value_is_declared_by_a_class_or_by_text(value: object) -> None:
    schema = source(value=value).value.schema
    assert schema is not None
    assert [field.name for field in schema.arrow] == ["user", "amount"]


@pytest.mark.parametrize(("value", "format_name"), [(str, "text"), (bytes, "raw"), (int, "json"), (None, "json")])
def test_the_format_follows_from_the_type(value: object, format_name: str) -> None:
    assert source(value=value).value.format == format_name


def test_a_format_can_be_chosen_and_must_exist() -> None:
    assert source(value=int, value_format="int64").value.format == "int64"
    with pytest.raises(PotokError, match="jsn") as caught:
        source(value_format="jsn")
    assert caught.value.at is not None and caught.value.at.file == __file__


def test_a_bad_type_is_refused_with_its_position() -> None:
    with pytest.raises(PotokError) as caught:
        source(value="amount nothing")
    assert caught.value.at is not None and caught.value.at.file == __file__


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (None, "record timestamp"),
        ("ingestion", "ingestion time"),
        ("processing", "processing time"),
        ("created_at", 'field "created_at"'),
        (lambda v: 0, "a function"),
    ],
)
def test_the_event_time_comes_from_where_it_is_said(timestamp: object, text: str) -> None:
    assert source(timestamp=timestamp).timestamps.text == text


def test_an_empty_timestamp_is_refused() -> None:
    with pytest.raises(TopologyError, match="empty"):
        source(timestamp="")


def test_a_table_is_a_source_that_keeps_state() -> None:
    table = StreamsBuilder("q").table("users", value="name string", name="u")
    assert isinstance(table.node, TableSource)
    assert (table.name, table.node.topic, table.node.stateful) == ("u", "users", True)


def test_build_finds_fields_that_do_not_exist() -> None:
    builder = StreamsBuilder("q")
    builder.stream("orders", value=Order).filter(lambda v: v["amuont"] > 1).to("out")
    with pytest.raises(TopologyError, match="amuont"):
        builder.build()


def test_a_builder_can_be_built_twice_and_extended() -> None:
    builder = StreamsBuilder("q")
    stream = builder.stream("orders", value=Order)
    stream.to("out")
    first = builder.build()
    stream.group_by("user").count()
    assert len(first.nodes) == 2 and len(builder.build().nodes) == 4


def test_keys_of_any_type_are_declared_like_values() -> None:
    schema = source(key=int).key.schema
    assert schema is not None and schema.arrow == pa.int64()
