"""SHOW, DESCRIBE and ASSERT: what they tell of a catalog and its queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from potok.settings import Settings
from potok.sql.errors import UnknownName
from potok.statements.inspect.settings import show_properties
from potok.statements.inspect.topics import AssertionNotMet
from potok.statements.results import Done, Rows
from sql.in_process_sql import InProcessSql

SCRIPT = """
CREATE TYPE money AS DECIMAL(9, 2);
CREATE STREAM orders (order_id VARCHAR KEY, user_id VARCHAR, amount DOUBLE, trace BYTES HEADER('trace'))
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 2);
CREATE STREAM big AS SELECT order_id, user_id, amount FROM orders WHERE amount > 1;
CREATE TABLE hourly AS
  SELECT user_id, COUNT(*) AS n FROM big WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 1 DAY) GROUP BY user_id;
"""


@pytest.fixture
def driver() -> Iterator[InProcessSql]:
    with InProcessSql(SCRIPT) as driver:
        driver.send("orders", {"user_id": "u1", "amount": 2.0}, "o1", timestamp=1_000)
        driver.send("orders", b"nonsense", "o2", timestamp=2_000)
        driver.run()
        yield driver


def reported(driver: InProcessSql, sql: str) -> Rows:
    result = driver.session.execute(sql)[0].result
    assert isinstance(result, Rows)
    return result


def details(rows: Rows) -> dict[str, Any]:
    return dict(rows.details)


def test_streams_and_tables_are_listed_with_topics_and_formats(driver: InProcessSql) -> None:
    assert driver.query("LIST STREAMS;") == [
        {
            "Stream Name": "BIG",
            "Kafka Topic": "BIG",
            "Key Format": "KAFKA",
            "Value Format": "JSON",
            "Windowed": "false",
            "Query": "CSAS_BIG_2",
        },
        {
            "Stream Name": "ORDERS",
            "Kafka Topic": "orders",
            "Key Format": "KAFKA",
            "Value Format": "JSON",
            "Windowed": "false",
            "Query": "",
        },
    ]
    (table,) = driver.query("SHOW TABLES;")
    assert (table["Table Name"], table["Windowed"]) == ("HOURLY", "true")


def test_an_extended_list_describes_each(driver: InProcessSql) -> None:
    found = details(reported(driver, "SHOW STREAMS EXTENDED;"))
    assert list(found) == ["BIG", "ORDERS"]
    assert details(found["BIG"])["Records in topic"] == "1"


def test_topics_of_dead_letters_are_listed_only_with_all(driver: InProcessSql) -> None:
    names = [row["Kafka Topic"] for row in driver.query("SHOW TOPICS;")]
    assert names == ["BIG", "HOURLY", "orders"]
    assert "CSAS_BIG_2-dead-letters" in [row["Kafka Topic"] for row in driver.query("SHOW ALL TOPICS;")]


def test_topics_list_partitions_records_and_queries(driver: InProcessSql) -> None:
    rows = {row["Kafka Topic"]: row for row in driver.query("SHOW TOPICS EXTENDED;")}
    assert (rows["orders"]["Partitions"], rows["orders"]["Records"]) == (2, 2)
    assert rows["orders"]["Last Record"] == "1970-01-01T00:00:02.000+00:00"
    assert rows["BIG"]["Queries Writing"] == "CSAS_BIG_2"
    assert rows["BIG"]["Queries Reading"] == "CTAS_HOURLY_3"


def test_queries_report_their_progress(driver: InProcessSql) -> None:
    driver.send("orders", {"user_id": "u1", "amount": 2.0}, "o3", timestamp=3_000)
    rows = {row["Query ID"]: row for row in driver.query("SHOW QUERIES EXTENDED;")}
    assert rows["CSAS_BIG_2"]["Lag"] == 1
    assert rows["CSAS_BIG_2"]["Dead Letters"] == 1
    assert rows["CTAS_HOURLY_3"]["Sink Name"] == "HOURLY"
    assert driver.query("SHOW QUERIES;")[0]["Query Type"] == "PERSISTENT"


def test_types_variables_and_functions_are_listed(driver: InProcessSql) -> None:
    assert driver.query("SHOW TYPES;") == [{"Type Name": "MONEY", "Schema": "DECIMAL(9, 2)"}]
    driver.execute("DEFINE place = 'Oslo';")
    assert driver.query("SHOW VARIABLES;") == [{"Variable Name": "place", "Value": "Oslo"}]
    driver.execute("UNDEFINE PLACE;")
    with pytest.raises(UnknownName, match="there is no variable place"):
        driver.execute("UNDEFINE place;")
    functions = {row["Function Name"]: row["Type"] for row in driver.query("SHOW FUNCTIONS;")}
    assert [functions[name] for name in ("SUBSTRING", "COUNT", "EXPLODE")] == ["SCALAR", "AGGREGATE", "TABLE"]
    assert len(functions) >= 149


def test_what_was_set_comes_before_the_settings_of_the_process(driver: InProcessSql) -> None:
    driver.execute("SET 'auto.offset.reset' = 'latest';")
    rows = driver.query("SHOW PROPERTIES;")
    assert rows[0] == {
        "Property": "auto.offset.reset",
        "Scope": "SESSION",
        "Default override": "SET",
        "Effective Value": "latest",
    }
    assert ("shards", "2") in [(row["Property"], row["Effective Value"]) for row in rows]


def test_passwords_are_not_shown() -> None:
    settings = Settings(state="redis://me:secret@host/0", kafka={"sasl.password": "secret", "client.id": "x"})
    rows = show_properties(settings, {}).rows
    assert not [row for row in rows if "secret" in str(row)]
    assert ("kafka.client.id", "SERVER", "SETTING", "x") in rows


def test_a_description_names_columns_types_and_keys(driver: InProcessSql) -> None:
    assert reported(driver, "DESCRIBE orders;").rows == (
        ("ORDER_ID", "VARCHAR", "KEY"),
        ("USER_ID", "VARCHAR", ""),
        ("AMOUNT", "DOUBLE", ""),
        ("TRACE", "BYTES", "HEADER('trace')"),
    )
    assert reported(driver, "DESCRIBE hourly;").rows[0] == ("USER_ID", "VARCHAR", "PRIMARY KEY (window type: TUMBLING)")


def test_describe_extended_shows_metrics(driver: InProcessSql) -> None:
    found = details(reported(driver, "DESCRIBE hourly EXTENDED;"))
    assert found["Window"] == "TUMBLING, 1h"
    assert found["Statement"].startswith("CREATE TABLE hourly")
    assert found["Records in topic"] == "1"
    assert found["State rows"] == "HOURLY: 1"
    assert found["Lag"] == "0 records"
    assert "Queries that read from this" not in found
    assert [row[0] for row in found["Queries that write to this"].rows] == ["CTAS_HOURLY_3"]
    assert details(reported(driver, "DESCRIBE big EXTENDED;"))["Dead letters"] == "1 open; decode: 1"


def test_all_tables_are_described_together(driver: InProcessSql) -> None:
    assert reported(driver, "DESCRIBE TABLES;").rows == (
        ("HOURLY", "USER_ID", "VARCHAR", "PRIMARY KEY (window type: TUMBLING)"),
        ("HOURLY", "N", "BIGINT", ""),
    )


def test_a_function_is_described_by_its_ways_to_be_called(driver: InProcessSql) -> None:
    found = reported(driver, "DESCRIBE FUNCTION substring;")
    assert found.rows[0][0].startswith("SUBSTRING(")
    assert [row[1] for row in found.rows] == ["VARCHAR", "BYTES"]
    assert details(found)["Category"] == "text"


@pytest.mark.parametrize(
    ("sql", "hint"),
    [("DESCRIBE oders;", "did you mean ORDERS?"), ("DESCRIBE FUNCTION substrng;", "did you mean SUBSTRING?")],
)
def test_what_is_not_there_cannot_be_described(driver: InProcessSql, sql: str, hint: str) -> None:
    with pytest.raises(UnknownName) as caught:
        driver.execute(sql)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    "sql",
    [
        "ASSERT TOPIC orders;",
        "ASSERT TOPIC orders WITH (PARTITIONS = 2, REPLICAS = 1) TIMEOUT 0 SECONDS;",
        "ASSERT NOT EXISTS TOPIC nothing TIMEOUT 0 SECONDS;",
    ],
)
def test_what_holds_is_asserted(driver: InProcessSql, sql: str) -> None:
    assert isinstance(driver.session.execute(sql)[0].result, Done)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("ASSERT TOPIC nothing TIMEOUT 0 SECONDS;", 'there is no topic "nothing"'),
        ("ASSERT TOPIC orders WITH (PARTITIONS = 3) TIMEOUT 0 SECONDS;", "does not have PARTITIONS = 3"),
        ("ASSERT TOPIC orders WITH (REPLICAS = 3) TIMEOUT 0 SECONDS;", "does not have REPLICAS = 3"),
        ("ASSERT NOT EXISTS TOPIC orders TIMEOUT 0 SECONDS;", 'topic "orders" exists'),
    ],
)
def test_failed_checks_are_reported(driver: InProcessSql, sql: str, message: str) -> None:
    with pytest.raises(AssertionNotMet) as caught:
        driver.execute(sql)
    assert message in caught.value.message
