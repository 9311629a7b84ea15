"""Systems that follow a database: a search index, a cache and a lake, kept up to date by one program.

PostgreSQL is the only place that is written to. Its changes are captured; customers and orders are joined and summed;
an OpenSearch index, a Redis cache and a Delta table follow, each exactly once.

    python examples/derived_systems/app.py       # starts PostgreSQL and Redis, changes rows, and shows what follows

With SHOP_URL, REDIS_URL and OPENSEARCH_URL in the environment, the program uses these servers:

    potok run examples/derived_systems/app.py
"""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import potok
from potok import StreamsBuilder
from potok.sources import captured

TABLES = """
CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, city text NOT NULL);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers, item text NOT NULL,
                     amount double precision NOT NULL);
"""
ROWS = """
INSERT INTO customers VALUES (1, 'Ann', 'Riga'), (2, 'Bob', 'Oslo');
INSERT INTO orders VALUES (10, 1, 'lamp', 40), (11, 1, 'chair', 60), (12, 2, 'table', 250), (13, 2, 'rug', 80);
"""
CHANGES = """
UPDATE customers SET city = 'Porto' WHERE id = 1;  -- every order of Ann changes in every system
UPDATE orders SET amount = 55 WHERE id = 11;
DELETE FROM orders WHERE id = 13;
INSERT INTO orders VALUES (14, 2, 'desk', 300);
"""
PATIENCE_S = 120.0


def build(shop_url: str, redis_url: str, search_url: str, lake: str) -> StreamsBuilder:
    """Build the program. Without `search_url`, there is no index."""
    builder = StreamsBuilder("derived-systems")
    shop = builder.cdc(shop_url, tables=["customers", "orders"], name="shop")
    customers = shop.table("customers", key=int, value="name string, city string")
    orders = shop.table("orders", key=int, value="customer_id bigint, item string, amount double")

    # A change of either side changes the row: an order that was updated, and all orders of a customer who moved.
    sales = orders.join(
        customers,
        on="customer_id",
        joiner=lambda order, customer: {
            "item": order["item"],
            "amount": order["amount"],
            "customer": customer["name"],
            "city": customer["city"],
        },
        value="item string, amount double, customer string, city string",
        name="sales",
    )
    sales.to_delta(Path(lake) / "sales", columns={"key": "order_id"})
    if search_url:
        sales.to_opensearch(search_url, "sales")

    by_city = sales.group_by("city").sum("amount", name="by_city")
    by_city.to_redis(redis_url, prefix="sales:")
    return builder


def read_lake(lake: str) -> list[tuple[Any, ...]]:
    from deltalake import DeltaTable

    rows = DeltaTable(f"{lake}/sales").to_pyarrow_table().sort_by("order_id").to_pylist()
    return [tuple(row.values()) for row in rows]


def read_cache(url: str) -> dict[str, float]:
    import redis

    with redis.Redis.from_url(url, decode_responses=True) as client:
        return {key.removeprefix("sales:"): float(client.get(key)) for key in sorted(client.keys("sales:*"))}


def read_index(url: str, text: str) -> list[str]:
    """Return what a search finds."""
    import urllib3

    with urllib3.PoolManager() as pool:
        pool.request("POST", f"{url}/sales/_refresh")
        found = pool.request("POST", f"{url}/sales/_search", json={"query": {"match": {"city": text}}}).json()
    hits = sorted(found["hits"]["hits"], key=lambda hit: int(hit["_id"]))
    return [f"{hit['_id']}: {hit['_source']['item']}" for hit in hits]


def run_sql(url: str, statements: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements)


def wait_for(what: str, read: Any, wanted: Any) -> None:
    """Wait until a system shows what the database says: each follows within a batch or two."""
    end = time.monotonic() + PATIENCE_S
    found = None
    while time.monotonic() < end:
        try:
            found = read()
        except Exception as error:  # noqa: BLE001 - a table or an index that is not there yet
            found = error
        if found == wanted:
            return
        time.sleep(0.2)
    raise SystemExit(f"{what} shows {found!r}, not {wanted!r}")


def show(servers: dict[str, str], lake: str) -> None:
    print("lake:", ", ".join(f"{order} {item} {amount:.0f} {city}" for order, item, amount, _, city in read_lake(lake)))
    print("cache:", ", ".join(f"{city} {amount:.0f}" for city, amount in read_cache(servers["REDIS_URL"]).items()))
    if servers["OPENSEARCH_URL"]:
        for city in ("Riga", "Porto", "Oslo"):
            found = read_index(servers["OPENSEARCH_URL"], city)
            print(f"search {city}:", ", ".join(found) or "nothing")


def main(log: str, lake: str, servers: dict[str, str]) -> None:
    """Fill an empty database, follow it, change it, and show what every system has before and after."""
    shop, cache, search = servers["SHOP_URL"], servers["REDIS_URL"], servers["OPENSEARCH_URL"]
    run_sql(shop, TABLES + ROWS)
    builder = build(shop, cache, search, lake)
    with ExitStack() as running:
        running.enter_context(captured(builder, potok.open_broker(log)))
        query = potok.start(builder, broker=log)
        running.callback(query.stop)
        wait_for("the lake", lambda: len(read_lake(lake)), 4)
        wait_for("the cache", lambda: read_cache(cache), {"Oslo": 330.0, "Riga": 100.0})
        if search:
            wait_for("the index", lambda: read_index(search, "Riga"), ["10: lamp", "11: chair"])
        show(servers, lake)
        run_sql(shop, CHANGES)
        print("-- Ann moves to Porto, an order gets cheaper, one is cancelled, one is new")
        wait_for("the cache", lambda: read_cache(cache), {"Oslo": 550.0, "Porto": 95.0})
        wait_for("the lake", lambda: sum(row[2] for row in read_lake(lake)), 645.0)
        if search:
            wait_for("the index", lambda: read_index(search, "Oslo"), ["12: table", "14: desk"])
        show(servers, lake)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parent))
    from servers import servers

    with TemporaryDirectory() as directory, servers(Path(directory)) as urls:
        main(f"{directory}/log", f"{directory}/lake", urls)
else:
    # `potok run` takes the servers from the environment.
    builder = build(
        os.environ.get("SHOP_URL", "postgresql://localhost/shop"),
        os.environ.get("REDIS_URL", "redis://localhost:6379/0"),
        os.environ.get("OPENSEARCH_URL", ""),
        os.environ.get("LAKE", "./lake"),
    )
