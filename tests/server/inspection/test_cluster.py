from __future__ import annotations

import httpx

from potok.log.clients.consumer import Consumer
from server.conftest import sell
from statements.playing import Play


def test_the_cluster_shows_the_process_the_holders_and_the_groups(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.0))
    with Consumer(shop.broker, "orders", group="billing", start="earliest") as consumer:
        consumer.poll(5)
        consumer.commit()
        found = client.get("/cluster").json()
        group = client.get("/groups/billing").json()
    assert found["driver"]["process"] > 0 and found["driver"]["memory_bytes"] > 1_000_000
    assert {holder["query"]: holder["starts"] for holder in found["holders"]} == {
        "CTAS_HOURLY_2": 1,
        "CTAS_TOTALS_1": 1,
    }
    (billing,) = found["groups"]
    assert (billing["group"], billing["kind"], len(billing["members"]), billing["lag"]) == (
        "billing",
        "consumers",
        1,
        0,
    )
    assert {part["member"] for part in group["partitions"]} == {group["members"][0]["client"]}
    assert client.get("/groups/nobody").status_code == 404
