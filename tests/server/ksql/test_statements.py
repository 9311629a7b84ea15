from __future__ import annotations

from typing import Any

import httpx
import pytest

from statements.playing import Play


def ksql(client: httpx.Client, text: str, status: int = 200, **more: Any) -> Any:
    answer = client.post("/ksql", json={"ksql": text, **more})
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_statement_that_changes_the_catalog_returns_its_command(client: httpx.Client) -> None:
    (entity,) = ksql(client, "CREATE STREAM big AS SELECT * FROM orders WHERE amount > 100;")
    assert entity["@type"] == "currentStatus"
    assert entity["commandId"] == "stream/BIG/create"
    assert entity["commandSequenceNumber"] == 3
    assert entity["commandStatus"] == {
        "status": "SUCCESS",
        "message": "Created query with ID CSAS_BIG_3",
        "queryId": "CSAS_BIG_3",
    }
    assert client.get("/status/stream/BIG/create").json()["status"] == "SUCCESS"
    ksql(client, "TERMINATE CSAS_BIG_3;")
    assert client.get("/status/stream/BIG/create").json()["status"] == "TERMINATED"
    assert client.get("/status").json()["commandStatuses"]["stream/BIG/create"] == "TERMINATED"


def test_inserts_say_nothing_when_they_succeed(client: httpx.Client, shop: Play) -> None:
    assert ksql(client, "INSERT INTO orders (id, amount) VALUES ('a', 1.5);") == []
    assert shop.rows("SELECT id, amount FROM orders;") == [("a", 1.5)]


def test_what_is_there_already_is_a_warning(client: httpx.Client) -> None:
    (entity,) = ksql(client, "CREATE STREAM IF NOT EXISTS orders (id VARCHAR) WITH (KAFKA_TOPIC = 'orders');")
    assert entity["@type"] == "warning_entity"


def test_streams_and_tables_are_listed(client: httpx.Client) -> None:
    streams, tables = ksql(client, "SHOW STREAMS; LIST TABLES;")
    assert streams["streams"] == [
        {
            "type": "STREAM",
            "name": "ORDERS",
            "topic": "orders",
            "keyFormat": "KAFKA",
            "valueFormat": "JSON",
            "isWindowed": False,
        }
    ]
    assert [(table["name"], table["isWindowed"]) for table in tables["tables"]] == [("HOURLY", True), ("TOTALS", False)]


@pytest.mark.parametrize(
    ("text", "kind", "field"),
    [
        ("SHOW QUERIES;", "queries", "queries"),
        ("SHOW QUERIES EXTENDED;", "query_descriptions", "queryDescriptions"),
        ("SHOW TOPICS;", "kafka_topics", "topics"),
        ("SHOW TOPICS EXTENDED;", "kafka_topics_extended", "topics"),
        ("SHOW FUNCTIONS;", "function_names", "functions"),
        ("SHOW TYPES;", "type_list", "types"),
        ("SHOW VARIABLES;", "variables", "variables"),
        ("SHOW PROPERTIES;", "properties", "properties"),
        ("SHOW STREAMS EXTENDED;", "source_descriptions", "sourceDescriptions"),
        ("DESCRIBE TABLES;", "source_descriptions", "sourceDescriptions"),
        ("DESCRIBE totals;", "sourceDescription", "sourceDescription"),
        ("DESCRIBE FUNCTION SUBSTRING;", "describe_function", "functions"),
        ("EXPLAIN CTAS_TOTALS_1;", "queryDescription", "queryDescription"),
        ("EXPLAIN SELECT * FROM orders EMIT CHANGES;", "queryDescription", "queryDescription"),
        ("EXPLAIN SELECT * FROM totals WHERE user_id = 'a';", "queryDescription", "queryDescription"),
        ("ASSERT TOPIC orders WITH (PARTITIONS = 2);", "assert_topic", "topicName"),
    ],
)
def test_every_statement_that_looks_has_its_entity(client: httpx.Client, text: str, kind: str, field: str) -> None:
    (entity,) = ksql(client, text)
    assert entity["@type"] == kind
    assert entity["statementText"] == text
    assert entity["warnings"] == []
    assert field in entity


def test_a_description_names_columns_and_queries(client: httpx.Client) -> None:
    (entity,) = ksql(client, "DESCRIBE orders EXTENDED;")
    reported = entity["sourceDescription"]
    assert [(field["name"], field["schema"]["type"], field.get("type")) for field in reported["fields"]] == [
        ("ID", "STRING", "KEY"),
        ("USER_ID", "STRING", None),
        ("AMOUNT", "DOUBLE", None),
    ]
    assert sorted(query["id"] for query in reported["readQueries"]) == ["CTAS_HOURLY_2", "CTAS_TOTALS_1"]
    assert reported["sourceConstraints"] == ["HOURLY", "TOTALS"]
    assert (reported["partitions"], reported["extended"]) == (2, True)


def test_a_failing_statement_returns_the_results_of_those_before_it(client: httpx.Client) -> None:
    reported = ksql(client, "CREATE TYPE t AS INT; DROP STREAM nobody; CREATE TYPE u AS INT;", 400)
    assert (reported["@type"], reported["error_code"]) == ("statement_error", 40001)
    assert "there is no stream or table NOBODY" in reported["message"]
    assert reported["statementText"] == "DROP STREAM nobody;"
    assert [entity["commandId"] for entity in reported["entities"]] == ["type/T/create"]
    assert list(ksql(client, "SHOW TYPES;")[0]["types"]) == ["T"]


def test_queries_are_sent_to_their_own_address(client: httpx.Client) -> None:
    reported = ksql(client, "SELECT * FROM totals;", 400)
    assert reported["error_code"] == 40002
    assert "/query-stream" in reported["message"]


def test_a_script_is_not_read_from_the_disk_of_the_server(client: httpx.Client) -> None:
    reported = ksql(client, "RUN SCRIPT '/etc/hostname';", 400)
    assert "does not read files" in reported["message"]


def test_variables_and_properties_hold_for_one_request(client: httpx.Client) -> None:
    (entity,) = ksql(client, "DESCRIBE ${what};", sessionVariables={"what": "totals"})
    assert entity["sourceDescription"]["name"] == "TOTALS"
    (entity,) = ksql(client, "SET 'auto.offset.reset' = 'earliest'; SHOW PROPERTIES;")
    assert entity["overwrittenProperties"] == ["auto.offset.reset"]
    (entity,) = ksql(client, "SHOW PROPERTIES;")
    assert entity["overwrittenProperties"] == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"ksql": 3}', b'{"ksql": "  "}', b"\xff", b'{"ksql": null}'])
def test_a_body_that_cannot_be_read_is_a_bad_request(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/ksql", content=body)
    assert answer.status_code == 400
    assert answer.json()["error_code"] == 40000


def test_odd_properties_are_a_bad_request(client: httpx.Client) -> None:
    assert ksql(client, "SHOW STREAMS;", 400, streamsProperties=[1])["error_code"] == 40000
    assert ksql(client, "SHOW STREAMS;", 400, sessionVariables="x")["error_code"] == 40000


def test_a_server_says_how_it_is(client: httpx.Client) -> None:
    info = client.get("/info").json()["KsqlServerInfo"]
    assert info["serverStatus"] == "RUNNING"
    (host,) = client.get("/clusterStatus").json()["clusterStatus"].values()
    assert host["hostAlive"] is True
    assert host["activeStandbyPerQuery"]["CTAS_TOTALS_1"]["activeStores"] == ["TOTALS"]
    assert client.get("/status/stream/NOBODY/create").status_code == 404


def test_a_function_is_described_with_its_arguments(client: httpx.Client) -> None:
    (entity,) = ksql(client, "DESCRIBE FUNCTION REGEXP_EXTRACT;")
    (variation,) = entity["functions"]
    assert [(one["name"], one["type"], one["isVariadic"]) for one in variation["arguments"]] == [
        ("pattern", "VARCHAR", False),
        ("text", "VARCHAR", False),
        ("group", "INT", False),
    ]
    assert variation["returnType"] == "VARCHAR"
