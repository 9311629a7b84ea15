"""Decisions about card payments: two patterns over the payments of a card, and a count per minute.

Every rule writes to the topic `decisions`; the table `cards` has the most severe decision for each card.

    python examples/anti_fraud/app.py                          # sends a few payments and prints the decisions
    potok run examples/anti_fraud/app.py --serve 8088          # keeps running; GET http://127.0.0.1:8088/tables/cards
"""

from tempfile import TemporaryDirectory
from typing import Any

import potok
from potok import Producer, StreamsBuilder, tumbling
from potok.patterns import cep

SEVERITY = {"review": 1, "block": 2}
LIMIT_PER_MINUTE = 5


def decision(verdict: str, rule: str, payments: list[Any]) -> dict[str, Any]:
    return {"decision": verdict, "rule": rule, "payments": [payment["payment_id"] for payment in payments]}


def more_severe(known: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return new if SEVERITY[new["decision"]] > SEVERITY[known["decision"]] else known


builder = StreamsBuilder("anti-fraud")
payments = builder.stream("payments", value="payment_id string, amount double, country string")
by_card = payments.group_by_key()

# Somebody tries a stolen card with small amounts before the large one.
small = cep.event("small", lambda payment: payment["amount"] < 10)
large = cep.event("large", lambda payment, match: payment["amount"] > 100 * match["small"].first["amount"])
card_testing = by_card.match(
    small.times_or_more(3).consecutive().next(large).within("10 min"), after="skip_past_last", name="card_testing"
).map_values(lambda match: decision("block", "card testing", [*match["small"], *match["large"]]))

# One card cannot be in two countries within half an hour.
here = cep.event("here")
elsewhere = cep.event("elsewhere", lambda payment, match: payment["country"] != match["here"].first["country"])
travel = by_card.match(here.next(elsewhere).within("30 min"), name="travel").map_values(
    lambda match: decision("review", "impossible travel", [*match["here"], *match["elsewhere"]])
)

# Many payments in one minute: counted by the window, decided when it is closed.
frequent = (
    by_card.windowed_by(tumbling("1 min", grace="5 s"))
    .emit_final()
    .aggregate(list, lambda payment, known: [*known, payment], name="per_minute")
    .to_stream()
    .filter(lambda found: len(found) > LIMIT_PER_MINUTE)
    .map(lambda window, found: (window.key, decision("review", "too frequent", found)))
)

decisions = card_testing.merge(travel, frequent)
decisions.to("decisions")
decisions.group_by_key().reduce(more_severe, name="cards")

SAMPLE = [
    ("card-1", 0, 1.0, "NL"),
    *[("card-3", second, 20.0, "FR") for second in range(1, 7)],
    ("card-2", 10, 55.0, "DE"),
    ("card-1", 20, 2.0, "NL"),
    ("card-4", 30, 15.0, "IT"),
    ("card-1", 40, 1.5, "NL"),
    ("card-1", 60, 900.0, "NL"),
    ("card-2", 600, 70.0, "BR"),
    ("card-4", 3_600, 25.0, "IT"),
]
"""Card, second, amount and country of each payment."""


def main() -> None:
    """Send the sample to an empty log, and print the decision for each card."""
    with TemporaryDirectory() as log:
        with Producer(log) as producer:
            for number, (card, second, amount, country) in enumerate(SAMPLE):
                value = {"payment_id": f"p{number}", "amount": amount, "country": country}
                producer.send("payments", value, key=card, timestamp=second * 1_000)
        potok.run(builder, broker=log, until_end=True)
        with potok.open_tables(log, "anti-fraud") as tables:
            for card, found in sorted(tables["cards"].all().items()):
                print(card, found["decision"], found["rule"], *found["payments"])


if __name__ == "__main__":
    main()
