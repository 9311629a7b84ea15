"""A topology for people."""

from __future__ import annotations

import json

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.errors import TopologyError
from potok.topology.describe import describe, description_of
from potok.topology.graph import Topology
from potok.topology.nodes.windows import tumbling


def shop() -> Topology:
    builder = StreamsBuilder("shop")
    orders = builder.stream("orders", value="user string, amount double", timestamp="ingestion")
    large = orders.filter(lambda v: v["amount"] > 100, name="large")
    large.to("large-orders")
    orders.group_by("user").windowed_by(tumbling("1 hour", grace="5 minutes")).count(name="hourly")
    orders.merge(large, name="both").peek(print, name="look").foreach(print, name="done")
    return builder.build()


def test_each_step_is_shown_below_its_upstream_step() -> None:
    assert describe(shop()).splitlines() == [
        "topology shop",
        "  stream_source orders: value user string, amount double as json; time: ingestion time",
        "    -> filter large",
        "      -> sink large.to.large-orders: to topic large-orders",
        "      -> merge both",
        "        -> peek look",
        "          -> foreach done",
        "    -> select_key orders.group_by",
        "      -> aggregate hourly: count, tumbling 1h, grace 5m",
        "    -> merge both (see above)",
        "  dead letters: topic shop-dead-letters",
    ]


def test_mermaid_has_a_shape_for_each_role_and_an_arrow_for_each_edge() -> None:
    lines = describe(shop(), "mermaid").splitlines()
    assert lines[0] == "flowchart LR"
    assert '    n0(["orders<br/><i>stream_source</i>"])' in lines
    assert '    n2[/"large.to.large-orders<br/><i>sink</i>"/]' in lines
    assert '    n4[("hourly<br/><i>aggregate</i>")]' in lines
    assert sum("-->" in line for line in lines) == 8


def test_quotes_in_a_name_do_not_end_a_label() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a").filter(lambda v: True, name='say "hi"').to("b")
    assert "say 'hi'" in describe(builder.build(), "mermaid")


def test_the_description_is_plain_data() -> None:
    found = json.loads(describe(shop(), "json"))
    assert found["name"] == "shop"
    assert (found["reads"], found["writes"], found["tables"]) == (["orders"], ["large-orders"], ["hourly"])
    assert found["dead_letters"] == "shop-dead-letters"
    steps = {step["name"]: step for step in found["steps"]}
    assert [steps[name]["role"] for name in ("orders", "large", "large.to.large-orders", "hourly")] == [
        "source",
        "step",
        "sink",
        "table",
    ]
    assert steps["both"]["upstreams"] == ["orders", "large"]
    assert steps["hourly"]["value"] == "int64"
    assert __file__ in steps["large"]["at"]


def test_a_step_says_whether_it_runs_natively_and_why_not() -> None:
    steps = {step["name"]: step for step in description_of(shop())["steps"]}
    assert (steps["large"]["runs"], steps["large"]["reason"]) == ("native", "")
    assert "100" in steps["large"]["expressions"][0]
    assert steps["look"]["runs"] == "python" and steps["look"]["reason"]


def test_a_fold_that_depends_on_the_order_is_marked() -> None:
    builder = StreamsBuilder("q")
    by_user = builder.stream("a").group_by(lambda v: v["u"])
    by_user.collect_list(name="all")
    by_user.latest(name="last")
    marked = [step["name"] for step in description_of(builder.build())["steps"] if step["order_dependent"]]
    assert marked == ["all"]


def test_another_form_is_refused_with_those_there_are() -> None:
    with pytest.raises(TopologyError, match="xml") as caught:
        describe(shop(), "xml")
    assert "mermaid" in caught.value.hint
