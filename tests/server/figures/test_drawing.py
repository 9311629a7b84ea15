from __future__ import annotations

from typing import Any

from potok.server.figures.drawing import draw


def step(name: str, kind: str, role: str, upstreams: list[str], **more: Any) -> dict[str, Any]:
    step = {"name": name, "kind": kind, "role": role, "upstreams": upstreams, "topic": None, "detail": ""}
    return {**step, "runs": "native", "reason": "", "expressions": [], "at": None, **more}


DESCRIPTION = {
    "name": "shop",
    "tables": ["counts", "hourly"],
    "steps": [
        step("orders", "stream_source", "source", [], topic="orders", detail="value string as text; time: ..."),
        step("orders.filter", "filter", "step", ["orders"], expressions=["value.amount > 100"], at="shop.py:3"),
        step("mark", "map_values", "step", ["orders.filter"], runs="python", reason="it formats text"),
        step("mark.to.large", "sink", "sink", ["mark"], topic="large", detail="to topic large"),
        step("mark.shop", "to_http", "sink", ["mark"], detail="to http://shop/orders"),
        step("mark.foreach", "foreach", "step", ["mark"], runs="python", reason="it has an effect outside"),
        step("counts", "aggregate", "table", ["orders"], detail="count"),
        step("hourly", "aggregate", "table", ["orders"], detail="fold, tumbling 1h, grace 0ms"),
    ],
}


def test_a_box_is_coloured_by_its_role_and_labelled_by_what_it_is() -> None:
    boxes = {box["name"]: (box["family"], box["label"], box["detail"]) for box in draw(DESCRIPTION)["nodes"]}

    assert boxes == {
        "orders": ("source", "orders", "topic"),
        "orders.filter": ("stateless", "filter", "value.amount > 100"),
        "mark": ("stateless", "mark", "map values"),
        "mark.to.large": ("sink", "large", "topic"),
        "mark.shop": ("sink", "shop", "to http://shop/orders"),
        "mark.foreach": ("sink", "foreach", "foreach"),
        "counts": ("stateful", "counts", "count"),
        "hourly": ("stateful", "hourly", "aggregate, tumbling 1h, grace 0ms"),
    }


def test_a_step_says_how_it_runs_and_topics_do_not() -> None:
    boxes = {box["name"]: (box["mode"], box["why"]) for box in draw(DESCRIPTION)["nodes"]}

    assert boxes["orders.filter"] == ("native", "")
    assert boxes["mark"] == ("python", "it formats text")
    assert boxes["orders"] == boxes["mark.to.large"] == ("", "")


def test_tables_are_listed_with_what_they_keep() -> None:
    assert draw(DESCRIPTION)["tables"] == [
        {"name": "counts", "kind": "count", "windowed": False},
        {"name": "hourly", "kind": "aggregate, tumbling 1h, grace 0ms", "windowed": True},
    ]
