"""Tables of a database in SQL."""

from __future__ import annotations

from typing import Any

import pytest

from potok.sql.captured import captures_of
from potok.sql.errors import Refused
from potok.testing import TestDriver

CREATE = (
    "CREATE SOURCE TABLE users (id INT PRIMARY KEY, name VARCHAR, balance DECIMAL(10, 2)) "
    "WITH (CONNECTOR = 'postgres', URL = 'env:SHOP_URL', CAPTURE = 'shop');"
)
TOPIC = "shop.public.users"


def event(op: str, after: dict[str, Any] | None) -> dict[str, Any]:
    return {"before": None, "after": after, "source": {}, "op": op, "ts_ms": 1}


def test_a_captured_table_is_pulled_and_joined_like_any_other() -> None:
    script = (
        CREATE
        + "CREATE STREAM clicks (id INT KEY, page VARCHAR) WITH (KAFKA_TOPIC = 'clicks', FORMAT = 'JSON');"
        + "CREATE STREAM named AS SELECT c.id AS id, page, name FROM clicks c JOIN users u ON c.id = u.id;"
    )
    with TestDriver(sql=script) as driver:
        driver.send(TOPIC, event("r", {"id": 1, "name": "Ann", "balance": "BM4="}), {"id": 1}, timestamp=1)
        driver.send(TOPIC, event("u", {"id": 1, "name": "Ann2", "balance": "BM4="}), {"id": 1}, timestamp=2)
        driver.send("clicks", {"page": "/"}, "1", timestamp=3)
        driver.run()
        assert driver.query("SELECT * FROM users WHERE id = 1;")[0]["NAME"] == "Ann2"
        (row,) = driver.rows("named")
        assert row.columns["NAME"] == "Ann2"


def test_the_catalog_names_its_captures() -> None:
    orders = CREATE.replace("users", "orders", 1).replace("'shop')", "'shop', SOURCE_TABLE = 'sales.orders')")
    with TestDriver(sql=CREATE + orders) as driver:
        sources = driver.database.catalog.sources.values()
        (capture,) = captures_of(sources, {"SHOP_URL": "postgresql://reader@db/shop"})
        assert (capture.name, capture.tables) == ("shop", ("public.users", "sales.orders"))


def test_tables_of_mysql_name_their_database() -> None:
    create = CREATE.replace("'postgres'", "'mysql'")
    with pytest.raises(Refused, match="SOURCE_TABLE needs its database") as found:
        TestDriver(sql=create)
    assert found.value.hint == "write SOURCE_TABLE = 'database.users'"
    with TestDriver(sql=create.replace("'shop')", "'shop', SOURCE_TABLE = 'shop.users')")) as driver:
        sources = driver.database.catalog.sources.values()
        (capture,) = captures_of(sources, {"SHOP_URL": "mysql://reader@db/shop"})
        assert (capture.kind, capture.topic("users"), capture.times) == ("mysql", "shop.shop.users", "micros")
        driver.send("shop.shop.users", event("r", {"id": 1, "name": "Ann", "balance": "BM4="}), {"id": 1}, timestamp=1)
        driver.run()
        assert driver.query("SELECT * FROM users WHERE id = 1;")[0]["NAME"] == "Ann"


def test_topics_of_debezium_are_read_by_format() -> None:
    script = (
        "CREATE SOURCE TABLE users (id INT PRIMARY KEY, name VARCHAR) "
        "WITH (KAFKA_TOPIC = 'users', KEY_FORMAT = 'DEBEZIUM', VALUE_FORMAT = 'DEBEZIUM');"
        "CREATE STREAM changes (id INT KEY, op VARCHAR, after STRUCT<name VARCHAR>) "
        "WITH (KAFKA_TOPIC = 'events', KEY_FORMAT = 'DEBEZIUM', VALUE_FORMAT = 'DEBEZIUM');"
        "CREATE STREAM names AS SELECT id, op, after->name AS name FROM changes;"
    )
    with TestDriver(sql=script) as driver:
        for topic in ("users", "events"):
            driver.send(topic, {"schema": {}, "payload": event("c", {"id": 1, "name": "Ann"})}, {"id": 1})
        driver.run()
        assert driver.query("SELECT name FROM users WHERE id = 1;") == [{"NAME": "Ann"}]
        (row,) = driver.rows("names")
        assert (row.columns["OP"], row.columns["NAME"]) == ("c", "Ann")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("'postgres'", "'oracle'", "there is no connector 'oracle'"),
        ("'env:SHOP_URL'", "'postgresql://me:secret@db/shop'", "read from the environment"),
        (", CAPTURE = 'shop'", "", "CAPTURE is missing"),
        ("'shop')", "'Shop')", "cannot be the name of a capture"),
        ("'shop')", "'shop', VALUE_FORMAT = 'JSON')", "VALUE_FORMAT and CONNECTOR exclude each other"),
        ("CONNECTOR = 'postgres', ", "", "URL needs CONNECTOR"),
    ],
)
def test_a_mistake_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        TestDriver(sql=CREATE.replace(old, new))
