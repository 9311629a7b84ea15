"""Prices that follow demand and supply: ride requests per zone and minute, joined with the number of free drivers.

The table `prices` has the multiplier of each zone. Clients read it over HTTP and subscribe to its changes:

    python examples/dynamic_pricing/app.py                     # sends a few requests and prints the prices
    potok run examples/dynamic_pricing/app.py --serve 8088     # keeps running
    curl -N http://127.0.0.1:8088/tables/prices/changes        # every change of a price, as server-sent events
"""

from tempfile import TemporaryDirectory
from typing import Any

import potok
from potok import Producer, StreamsBuilder, tumbling

LOWEST, HIGHEST = 1.0, 3.0


def price(requests: int, supply: dict[str, Any] | None) -> dict[str, Any]:
    """The multiplier grows with the requests for each free driver."""
    free = supply["free"] if supply else 0
    multiplier = HIGHEST if free == 0 else min(max(requests / free, LOWEST), HIGHEST)
    return {"multiplier": round(multiplier, 2), "requests": requests, "free": free}


builder = StreamsBuilder("dynamic-pricing")
requests = builder.stream("ride-requests", value="rider string")
supply = builder.table("free-drivers", value="free bigint")

# Requests of each zone in each minute, passed on when the minute is over.
demand = (
    requests.group_by_key()
    .windowed_by(tumbling("1 min", grace="2 s"))
    .emit_final()
    .count(name="demand")
    .to_stream()
    .map(lambda window, count: (window.key, count))
)
demand.left_join(supply, price).to_table(name="prices")

SUPPLY = [("centre", 2), ("airport", 10)]
REQUESTS = [
    *[("centre", second) for second in (1, 5, 9, 20, 41)],
    *[("airport", second) for second in (50, 55, 58)],
    ("harbour", 59),
    *[("centre", second) for second in (62, 70, 80)],
    ("airport", 200),
]
"""Zone and second of each request."""


def main() -> None:
    """Send the sample to an empty log, and print the price of each zone."""
    with TemporaryDirectory() as log:
        with Producer(log) as producer:
            for zone, free in SUPPLY:
                producer.send("free-drivers", {"free": free}, key=zone, timestamp=0)
            for number, (zone, second) in enumerate(REQUESTS):
                producer.send("ride-requests", {"rider": f"r{number}"}, key=zone, timestamp=second * 1_000)
        potok.run(builder, broker=log, until_end=True)
        with potok.open_tables(log, "dynamic-pricing") as tables:
            for zone, found in sorted(tables["prices"].all().items()):
                print(zone, found["multiplier"], f"({found['requests']} requests, {found['free']} free drivers)")


if __name__ == "__main__":
    main()
