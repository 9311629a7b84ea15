"""The verbs that call a processor."""

from __future__ import annotations

from typing import Any

import pytest

from potok import Processor, StreamsBuilder, list_store, value_store, window_store
from potok.errors import TopologyError
from potok.expressions.function import WrongArity
from potok.topology.inference.infer import infer


class Plain(Processor):
    last = value_store()

    def process(self, key: Any, value: Any, ctx: Any) -> None:
        ctx.forward(value)


class Limited(Plain):
    seen = list_store()

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def on_timer(self, key: Any, at: int, ctx: Any) -> None: ...


def stream() -> Any:
    return StreamsBuilder("q").stream("in")


def test_a_class_an_instance_and_a_function_that_makes_one_are_processors() -> None:
    nodes = [stream().process(given).node for given in (Plain, Plain(), lambda: Plain())]
    assert [dict(node.stores).keys() for node in nodes] == [{"last"}] * 3


def test_stores_of_the_classes_above_belong_to_a_processor() -> None:
    node = stream().process(Limited(3), name="limits").node
    assert [name for name, _ in node.stores] == ["last", "seen"]
    assert node.name == "limits" and node.timed and not stream().process(Plain).node.timed


def test_a_window_store_makes_a_step_follow_the_watermark() -> None:
    made = stream().process(lambda k, v, c: None, stores={"recent": window_store("1 h")})
    assert made.node.timed and made.node.name == "in.process"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.process(Limited), "without arguments"),
        (lambda s: s.process(dict), "not a processor"),
        (lambda s: s.process(3), "not a processor"),
        (lambda s: s.process(Processor), "no process method"),
        (lambda s: s.process(Plain, stores={"a": value_store()}), "for a function"),
        (lambda s: s.process(lambda k, v, c: None, stores={"a b": value_store()}), "name of a store"),
        (lambda s: s.process(lambda k, v, c: None, stores={"a": 3}), "not a store"),
        (lambda s: s.process(Plain, outputs={"a/b": None}), "name of an output"),
        (lambda s: s.process(Plain, outputs={"a": None})["b"], 'no output "b"'),
        (lambda s: window_store(0), "retention"),
    ],
)
def test_what_cannot_be_a_processor_is_found_where_it_was_written(call: Any, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        call(stream())


def test_a_function_of_two_arguments_is_not_a_processor() -> None:
    with pytest.raises(WrongArity):
        stream().process(lambda key, value: None)


def test_a_name_with_a_slash_is_refused() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in").process(Plain, name="a/b").to("out")
    with pytest.raises(TopologyError, match="the step name"):
        builder.build()


def test_outputs_have_types_of_their_own() -> None:
    builder = StreamsBuilder("q")
    made = builder.stream("in").process(Plain, outputs={"alerts": "n bigint", "rest": None}, value="text string")
    made["alerts"].to("alerts")
    made.outputs["rest"].to("rest")
    made.stream.to("out")
    topology = builder.build()
    steps = infer(topology)
    types = [str(steps[topology.node(f"in.process{name}")].value) for name in ("", ".alerts", ".rest")]
    assert types == ["struct<text: string>", "struct<n: int64>", "None"]


def test_only_a_processor_that_keeps_keys_leaves_records_where_they_are() -> None:
    builder = StreamsBuilder("q")
    source = builder.stream("in")
    moved, kept = source.process(Plain, name="p"), source.processValues(Plain, name="v")
    moved.to("a")
    kept.to("b")
    steps = infer(builder.build())
    assert (steps[moved.node].rekeyed, steps[moved.node].sharded) == (True, False)
    assert (steps[kept.node].rekeyed, steps[kept.node].sharded) == (False, True)


def test_a_processor_over_several_partitions_of_a_key_depends_on_their_order() -> None:
    builder = StreamsBuilder("q")
    by_user = builder.stream("in").select_key("user")
    by_user.process(Plain, name="keeps").to("a")
    by_user.process(lambda k, v, c: None, name="looks").to("b")
    topology = builder.build()
    steps = infer(topology)
    assert [steps[topology.node(name)].order_dependent for name in ("keeps", "looks")] == [True, False]


def test_the_description_lists_stores_and_outputs() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in").process(Limited(1), name="p", outputs={"alerts": None}).to("out")
    assert "process p: stores last (value), seen (list); outputs alerts" in builder.describe()


class Short(Processor):
    def process(self, key: Any, value: Any) -> None: ...  # type: ignore[override]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Short(), "write def process(self, key, value, ctx): ..."),
        (lambda v: v, "write def process(key, value, ctx): ..., or pass a potok.Processor"),
    ],
)
def test_a_processor_with_other_arguments_is_answered_with_what_to_write(given: Any, said: str) -> None:
    with pytest.raises(WrongArity) as caught:
        StreamsBuilder("q").stream("s").process(given, name="p")
    assert caught.value.hint == said


def test_a_timer_with_other_arguments_is_answered_with_what_to_write() -> None:
    with pytest.raises(WrongArity) as caught:
        StreamsBuilder("q").stream("s").process(lambda key, value, ctx: [], on_timer=lambda at: [], name="p")
    assert caught.value.hint == "write def on_timer(key, at, ctx): ..."
