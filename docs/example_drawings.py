"""Draw the pictures of the examples.

`python -m docs.example_drawings` writes them; a test compares the files with this module.
"""

from __future__ import annotations

from functools import partial

from docs.drawings import HERE, WIDTH, Diagram


def anti_fraud() -> Diagram:
    d = Diagram("Payments, three rules, and the decisions", 230)
    d.box(10, 85, 120, 50, "payments", "topic, key: card")
    rules = (
        ("card testing", "pattern: small{3,} large within 10 min"),
        ("impossible travel", "pattern: here elsewhere within 30 min"),
        ("too frequent", "window: more than 5 in a minute"),
    )
    for number, (name, rule) in enumerate(rules):
        y = 10 + 72 * number
        d.box(185, y, 250, 56, name, rule)
        d.arrow(130, 110, 183, y + 28)
        d.arrow(435, y + 28, 493, 110)
    d.box(495, 85, 90, 50, "decisions", "topic")
    d.arrow(585, 110, 623, 110)
    d.box(625, 85, 85, 50, "cards", "table", kind="over")
    return d


def dynamic_pricing() -> Diagram:
    d = Diagram("Demand per minute, joined with supply, makes prices", 160)
    d.box(10, 20, 130, 50, "ride-requests", "topic, key: zone")
    d.box(10, 95, 130, 50, "free-drivers", "table, key: zone", kind="over")
    d.box(190, 20, 170, 50, "demand", "requests in each minute")
    d.box(410, 55, 120, 50, "left join", "requests / free")
    d.box(580, 55, 130, 50, "prices", "table, pushed", kind="over")
    d.arrow(140, 45, 188, 45)
    d.arrow(360, 45, 408, 75)
    d.arrow(140, 120, 408, 90)
    d.arrow(530, 80, 578, 80)
    return d


def derived_systems() -> Diagram:
    d = Diagram("One database is written to; a search index, a cache and a lake follow it", 200)
    d.box(10, 70, 110, 60, "PostgreSQL", "customers", "orders")
    d.box(165, 15, 130, 50, "customers", "table, from changes", kind="over")
    d.box(165, 135, 130, 50, "orders", "table, from changes", kind="over")
    d.box(340, 75, 130, 50, "sales", "join, key: order")
    d.box(340, 145, 130, 45, "by_city", "sum of the amounts")
    d.box(545, 10, 160, 50, "Delta table", "a row for each order", kind="over")
    d.box(545, 75, 160, 50, "OpenSearch", "a document for each", kind="over")
    d.box(545, 140, 160, 50, "Redis", "a key for each city", kind="over")
    d.arrow(120, 90, 163, 45)
    d.arrow(120, 110, 163, 155)
    d.arrow(295, 45, 338, 90)
    d.arrow(295, 155, 338, 110)
    d.arrow(470, 90, 543, 40)
    d.arrow(470, 100, 543, 100)
    d.arrow(405, 125, 405, 143)
    d.arrow(470, 167, 543, 167)
    return d


def chain(title: str, *boxes: tuple[str, str, str]) -> Diagram:
    """Draw boxes from left to right: a name, a line of text, and the kind of each."""
    d = Diagram(title, 90)
    width = (WIDTH - 20 - 40 * (len(boxes) - 1)) // len(boxes)
    for number, (name, text, kind) in enumerate(boxes):
        x = 10 + number * (width + 40)
        d.box(x, 15, width, 60, name, text, kind=kind)
        if number:
            d.arrow(x - 40, 45, x - 3, 45)
    return d


def iot() -> Diagram:
    d = Diagram("Datagrams, averages per minute, and silent sensors", 150)
    d.box(10, 45, 120, 55, "sensors", "datagrams", kind="over")
    d.box(170, 45, 130, 55, "gateway", "topic readings")
    d.box(350, 10, 180, 55, "average", "per minute, grace 30 s")
    d.box(350, 85, 180, 55, "silence", "a timer of 5 minutes")
    d.box(580, 10, 130, 55, "averages", "topic", kind="over")
    d.box(580, 85, 130, 55, "silent-sensors", "topic", kind="over")
    d.arrow(130, 72, 168, 72)
    d.arrow(300, 65, 348, 40)
    d.arrow(300, 80, 348, 110)
    d.arrow(530, 37, 578, 37)
    d.arrow(530, 112, 578, 112)
    return d


def rate_limit() -> Diagram:
    d = Diagram("Requests, the token bucket of each client, and two topics", 150)
    d.box(10, 45, 140, 55, "requests", "topic, key: client")
    d.box(220, 45, 190, 55, "token bucket", "3, and 3 more in 10 s", kind="over")
    d.box(480, 10, 200, 55, "allowed-requests", "topic")
    d.box(480, 85, 200, 55, "rejected-requests", "topic")
    d.arrow(150, 72, 218, 72)
    d.arrow(410, 65, 478, 40)
    d.arrow(410, 80, 478, 110)
    return d


PICTURES = {
    "../examples/anti_fraud/topology": anti_fraud,
    "../examples/dynamic_pricing/topology": dynamic_pricing,
    "../examples/derived_systems/topology": derived_systems,
    "../examples/clickstream/topology": partial(
        chain,
        "Clicks, visits, and the conversion per entry page",
        ("clicks", "topic", "bar"),
        ("session", "30 min, grace 5 min", "bar"),
        ("visits", "topic, when over", "bar"),
        ("conversion", "table by entry page", "over"),
    ),
    "../examples/iot/topology": iot,
    "../examples/leaderboard/topology": partial(
        chain,
        "Points, totals per player and day, and the board",
        ("points", "topic", "bar"),
        ("totals", "sum by player, day", "over"),
        ("changes", "by day", "bar"),
        ("leaderboard", "best three, a row a day", "over"),
    ),
    "../examples/rate_limit/topology": rate_limit,
    "../examples/notebook/topology": partial(
        chain,
        "A query, its table, a DataFrame and a plot",
        ("orders", "topic", "bar"),
        ("totals", "table of the query", "over"),
        ("to_pandas()", "one committed batch", "bar"),
        ("plot", "in the notebook", "over"),
    ),
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (HERE / f"{name}.svg").write_text(draw().svg())
