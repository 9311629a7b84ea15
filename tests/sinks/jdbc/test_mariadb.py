"""JDBC sinks, on a real MariaDB: its upserts, and its marks around names."""

from __future__ import annotations

import uuid
from typing import Any

from potok.sinks.jdbc.jdbc import JdbcTarget
from potok.sinks.sink_spec import Batch, Types
from potok.sinks.typed_rows import RowShape
from potok.spark.driver_spark import DriverSpark
from servers import MariadbServer
from tests.sinks.rows import deliver, opening, rows_of, typed

TYPES = Types(typed("string"), typed("name string, amount bigint"))


def test_rows_are_replaced_and_deleted_by_key_and_a_repeated_batch_is_recognised(
    spark: Any, mariadb: MariadbServer
) -> None:
    database = f"shop_{uuid.uuid4().hex[:8]}"
    mariadb.create_database(database)
    url = f"jdbc:mariadb://{mariadb.url.partition('@')[2]}/{database}"
    target = JdbcTarget(url, "orders", RowShape("upsert"), "", "", (("user", "root"),), 3_000)

    def put(records: list[tuple[Any, Any]], batch: Batch) -> dict[int, str]:
        given = opening(TYPES, epoch=batch.epoch, committed=batch.number - 1, spark=DriverSpark())
        sink_writer = target.open(given)
        try:
            return deliver(target, sink_writer, rows_of(records, TYPES), TYPES, batch)
        finally:
            sink_writer.close()

    put([("a", {"name": "ann", "amount": 1}), ("b", {"name": "bob", "amount": 2})], Batch(1, 1))
    second = [("a", {"name": "ann", "amount": 5}), ("b", None), ("k" * 300, {"name": "long", "amount": 3})]
    failures = put(second, Batch(1, 2))
    assert list(failures) == [2] and "Data too long for column 'key'" in failures[2]
    assert put(second, Batch(2, 2)) == failures
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM orders")
        assert cursor.fetchall() == (("a", "ann", 5),)
        cursor.execute("SHOW TABLES LIKE 'potok_rows_%'")
        assert cursor.fetchall() == (), "the second start has removed what the first one staged"


def test_a_row_that_is_equal_in_another_unique_column_is_not_overwritten(spark: Any, mariadb: MariadbServer) -> None:
    database = f"shop_{uuid.uuid4().hex[:8]}"
    mariadb.create_database(database)
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE orders (`key` varchar(9) PRIMARY KEY, name varchar(9) UNIQUE, amount bigint)")
        cursor.execute("INSERT INTO orders VALUES ('a', 'ann', 1), ('b', 'bob', 2)")
        connection.commit()
    records = [
        ("c", {"name": "ann", "amount": 7}),
        ("b", {"name": "bob", "amount": 8}),
        ("a", {"name": "bob", "amount": 9}),
        ("d", {"name": "dan", "amount": 4}),
    ]
    url = f"jdbc:mariadb://{mariadb.url.partition('@')[2]}/{database}"
    target = JdbcTarget(url, "orders", RowShape("upsert"), "", "", (("user", "root"),), 3_000)
    sink_writer = target.open(opening(TYPES, spark=DriverSpark()))
    try:
        failures = deliver(target, sink_writer, rows_of(records, TYPES), TYPES, Batch(1, 1))
    finally:
        sink_writer.close()
    assert list(failures) == [0, 2] and all("Duplicate entry" in text for text in failures.values())
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM orders ORDER BY 1")
        assert cursor.fetchall() == (("a", "ann", 1), ("b", "bob", 8), ("d", "dan", 4))
