from __future__ import annotations

import inspect
import threading
from pathlib import Path
from typing import Any

import pytest

from potok import StreamsBuilder
from potok.dsl.sinks.delivering import UnnamedSink
from potok.errors import TopologyError
from potok.runtime.queries.prepare import check_picklable
from potok.sinks.callable import NotIdempotent
from potok.sinks.guarantee import Guarantee, UnknownGuarantee
from potok.topology.compare import compare, shape_of
from potok.topology.inference.infer import infer
from potok.topology.nodes import Deliver, Sink
from potok.topology.pruning import used_fields

VALUE = "user string, amount bigint"


def built(build: Any) -> StreamsBuilder:
    builder = StreamsBuilder("q")
    build(builder.stream("orders", value=VALUE))
    return builder


def test_a_guarantee_is_shown_unless_it_is_the_default() -> None:
    builder = StreamsBuilder("q")
    orders = builder.stream("orders", value=VALUE)
    orders.to("a")
    orders.to("b", guarantee="at-least-once")
    orders.to_http("http://shop/orders", guarantee=Guarantee.AT_MOST_ONCE)
    assert [node.guarantee.value for node in builder.build().of_type(Sink)] == ["exactly_once", "at_least_once"]
    text = builder.describe()
    assert "to topic a\n" in text
    assert "to topic b, at_least_once\n" in text
    assert "to_http orders.to_http.shop: to http://shop/orders, at_most_once\n" in text


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (lambda orders: orders.to("a", guarantee="twice"), UnknownGuarantee),
        (lambda orders: orders.to_files("a", guarantee="twice"), UnknownGuarantee),
        (lambda orders: orders.to_callable(lambda records: None), NotIdempotent),
        (lambda orders: orders.to_callable(lambda a, b, c: None), TopologyError),
        (lambda orders: orders.to_files("a", "csv"), TopologyError),
        (lambda orders: orders.to_postgres("postgresql://x", "t", key="id"), TopologyError),
        (lambda orders: orders.to_http("shop"), TopologyError),
    ],
)
def test_an_error_has_the_location_of_its_cause(build: Any, kind: type[TopologyError]) -> None:
    with pytest.raises(kind) as caught:
        built(build).build()
    at = caught.value.at
    assert at is not None
    assert (Path(at.file).name, at.line) == ("test_external_sinks.py", inspect.getsourcelines(build)[1])
    assert caught.value.hint


def test_a_wrong_arity_is_reported_with_the_arguments_that_are_passed() -> None:
    with pytest.raises(TopologyError) as caught:
        built(lambda orders: orders.to_callable(lambda: None))
    assert "lambda records, batch" in caught.value.hint


def test_two_sinks_with_one_destination_need_names_if_they_store_their_batches() -> None:
    with pytest.raises(UnnamedSink, match="order of the lines"):
        built(lambda orders: [orders.to_http("http://shop/a"), orders.to_http("http://shop/b")])
    builder = StreamsBuilder("q")
    orders = builder.stream("orders")
    orders.to_http("http://shop/a", name="first")
    orders.to_http("http://shop/b", name="second")
    orders.to_http("http://shop/c", guarantee="at_least_once")
    orders.to_http("http://shop/d", guarantee="at_least_once")
    names = [node.name for node in builder.build().of_type(Deliver)]
    assert names == ["first", "second", "orders.to_http.shop", "orders.to_http.shop-2"]


def test_a_sink_is_result_enough_and_reads_all_fields() -> None:
    topology = built(lambda orders: orders.to_files("lake")).build()
    assert used_fields(topology, infer(topology))[topology.sources[0]] is None
    assert topology.sink_topics == []


def test_a_function_of_the_driver_need_not_travel() -> None:
    lock = threading.Lock()
    topology = built(lambda orders: orders.to_callable(lambda records, batch: lock.locked())).build()
    check_picklable(topology)


def test_a_changed_guarantee_or_target_is_reported_and_compatible() -> None:
    def shape(**options: Any) -> Any:
        topology = built(lambda orders: orders.to_http(name="shop", **options)).build()
        return shape_of(topology, infer(topology))

    before = shape(url="http://old/orders?token=secret")
    after = shape(url="http://new/orders", guarantee="at_least_once")
    assert [(change.step, change.what, change.fits) for change in compare(before, after)] == [
        ("shop", "its guarantee was exactly_once and is at_least_once", True),
        ("shop", "it delivered to http://old/orders and delivers to http://new/orders", True),
    ]
    assert "secret" not in str(before)
    assert compare(before, before) == []
