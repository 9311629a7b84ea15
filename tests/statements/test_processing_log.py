"""What could not be computed is NULL, and reported: counted for each query, and record by record in a stream."""

from __future__ import annotations

import json

import pytest

from potok.expressions.failures import MOST
from potok.records.log_record import LogRecord
from potok.runtime.output.processing_log import PROCESSING_LOG
from potok.sql.errors import Refused
from potok.statements.push import failures
from potok.statements.results import Push
from statements.playing import Play

ORDERS = """
CREATE STREAM orders (id VARCHAR KEY, a INT, b INT, text VARCHAR)
    WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
SET 'auto.offset.reset' = 'earliest';
"""
RATIOS = "CREATE STREAM ratios AS SELECT id, a / b AS ratio, CAST(text AS INT) AS n FROM orders;"


def fed(play: Play, *rows: tuple[str, int, int, str]) -> None:
    for row in rows:
        values = ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in row)
        play.do(f"INSERT INTO orders VALUES ({values});")
    play.run()


def logged(play: Play) -> list[tuple[object, ...]]:
    return play.rows(
        "SELECT query_id, expression, message, source_topic, source_partition, source_offset, failures"
        " FROM KSQL_PROCESSING_LOG;"
    )


def test_a_failed_expression_is_reported_with_its_record(play: Play) -> None:
    play.do(ORDERS + RATIOS)
    fed(play, ("o1", 4, 2, "7"), ("o2", 1, 0, "8"), ("o3", 6, 3, "many"))
    reported = logged(play)
    assert [(*row[:2], *row[3:]) for row in reported] == [
        ("CSAS_RATIOS_1", "(A / B)", "orders", 0, 1, 1),
        ("CSAS_RATIOS_1", "CAST(TEXT AS INTEGER)", "orders", 0, 2, 1),
    ]
    assert "zero" in str(reported[0][2])
    assert "many" in str(reported[1][2])


def test_failures_are_counted_for_the_query_that_has_them(play: Play) -> None:
    play.do(ORDERS + RATIOS + "CREATE STREAM copy AS SELECT id, a FROM orders;")
    fed(play, ("o1", 1, 0, "7"), ("o2", 1, 0, "8"), ("o3", 6, 3, "many"))
    result = play.do("SHOW QUERIES EXTENDED;")
    counts = {row["Query ID"]: row["Failures"] for row in result.as_dicts()}  # type: ignore[union-attr]
    assert counts == {"CSAS_RATIOS_1": 3, "CSAS_COPY_2": 0}
    for statement in ("DESCRIBE ratios EXTENDED;", "EXPLAIN CSAS_RATIOS_1;"):
        details = dict(play.do(statement).details)  # type: ignore[union-attr]
        assert details["Failed expressions"] == "(A / B): 2; CAST(TEXT AS INTEGER): 1"


def test_frequent_failures_are_reported_a_few_times_and_counted(play: Play) -> None:
    play.do(ORDERS + "CREATE STREAM ratios AS SELECT id, a / b AS ratio FROM orders;")
    fed(play, *((f"o{number}", 1, 0, "") for number in range(MOST + 15)))
    reported = logged(play)
    assert [row[6] for row in reported] == [1] * MOST + [15]
    assert reported[-1][3:6] == (None, None, None)


def test_nothing_is_written_where_nothing_fails(play: Play) -> None:
    play.do(ORDERS + RATIOS)
    fed(play, ("o1", 4, 2, "7"))
    assert not play.broker.has_topic(PROCESSING_LOG)
    assert "KSQL_PROCESSING_LOG" not in [row[0] for row in play.rows("SHOW STREAMS;")]


def test_an_expression_of_two_columns_fails_once(play: Play) -> None:
    play.do(
        ORDERS + "CREATE TABLE t AS SELECT id, SUM(a / b) AS s, MIN(a / b) AS m, COUNT(*) AS n FROM orders GROUP BY id;"
    )
    fed(play, ("o1", 1, 0, ""))
    assert [row[1:2] + row[6:] for row in logged(play)] == [("(A / B)", 1)]


def test_a_row_of_a_table_that_changes_fails_once(play: Play) -> None:
    play.do(
        """CREATE TABLE t (id VARCHAR PRIMARY KEY, a INT, b INT)
            WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
        SET 'auto.offset.reset' = 'earliest';
        CREATE TABLE r AS SELECT id, a / b AS ratio FROM t;"""
    )
    for b in (0, 1):
        play.do(f"INSERT INTO t VALUES ('x', 3, {b});")
        play.run()
    assert [row[5] for row in logged(play)] == [0]


def test_a_failing_condition_is_reported(play: Play) -> None:
    play.do(ORDERS + "CREATE STREAM large AS SELECT id, a FROM orders WHERE a / b > 1;")
    fed(play, ("o1", 1, 0, ""), ("o2", 4, 2, ""))
    assert [row[1] for row in logged(play)] == ["((A / B) > 1)"]


def test_the_log_is_a_stream_that_queries_can_read(play: Play) -> None:
    play.do(ORDERS + RATIOS)
    play.do(
        "CREATE TABLE failures AS SELECT query_id, SUM(failures) AS n, MAX(source_offset / 0) AS nothing"
        " FROM KSQL_PROCESSING_LOG GROUP BY query_id;"
    )
    fed(play, ("o1", 1, 0, "7"), ("o2", 2, 0, "8"))
    play.run()
    assert play.rows("SELECT query_id, n FROM failures;") == [("CSAS_RATIOS_1", 2)]
    # What fails over the log is counted, and not reported there: it would go on forever.
    play.run()
    assert len(logged(play)) == 2
    described = play.do("DESCRIBE KSQL_PROCESSING_LOG;").as_dicts()  # type: ignore[union-attr]
    assert [row["Field"] for row in described][:3] == ["QUERY_ID", "TIME", "EXPRESSION"]
    assert "KSQL_PROCESSING_LOG" in [row[0] for row in play.rows("SHOW STREAMS;")]


def test_failures_of_queries_over_the_processing_log_are_not_logged_there(play: Play) -> None:
    play.do(ORDERS + RATIOS)
    play.do(
        "CREATE STREAM copied AS SELECT query_id, failures FROM KSQL_PROCESSING_LOG;"
        "CREATE STREAM again (query_id VARCHAR KEY, failures BIGINT) WITH (KAFKA_TOPIC = 'again', PARTITIONS = 1);"
        "INSERT INTO again SELECT * FROM copied;"
        "CREATE STREAM wrong AS SELECT query_id, failures / 0 AS n FROM again;"
    )
    fed(play, ("o1", 1, 0, "7"))
    for _ in range(3):
        play.run()
    assert [row[0] for row in logged(play)] == ["CSAS_RATIOS_1"]
    assert play.rows("SELECT * FROM wrong;") == [("CSAS_RATIOS_1", None)]
    counts = {row["Query ID"]: row["Failures"] for row in play.do("SHOW QUERIES EXTENDED;").as_dicts()}  # type: ignore[union-attr]
    assert counts["CSAS_WRONG_5"] == 1


def test_unreadable_records_and_failed_expressions_of_push_queries_are_reported(play: Play) -> None:
    play.do(ORDERS)
    result = play.do(
        "SELECT id, a / b AS ratio, UCASE(text) AS t FROM orders WHERE CAST(text AS INT) > 0 EMIT CHANGES;"
    )
    assert isinstance(result, Push)
    play.broker.append("orders", [LogRecord(b"o0", b"{broken")])
    fed(play, ("o1", 1, 0, "7"), ("o2", 4, 2, "8"), ("o3", 6, 3, "many"))
    rows: list[object] = []
    while len(rows) < 2:
        rows += result.next(20) or []
    result.close()
    assert rows == [("o1", None, "7"), ("o2", 2, "8")]
    reported = sorted(logged(play), key=lambda row: str(row[5]))
    query = result.query_id
    assert [(row[0], row[1], *row[3:]) for row in reported] == [
        (query, None, "orders", 0, 0, 1),
        (query, "(A / B)", "orders", 0, 1, 1),
        (query, "(CAST(TEXT AS INTEGER) > 0)", "orders", 0, 3, 1),
    ]
    assert str(reported[0][2]).startswith("the record cannot be decoded: ")


def test_a_failure_of_every_record_is_reported_while_no_row_is_emitted(play: Play) -> None:
    play.do(ORDERS)
    push = play.do("SELECT id FROM orders WHERE a / b > 0 EMIT CHANGES;")
    assert isinstance(push, Push)
    fed(play, ("o1", 1, 0, ""))
    while not play.broker.has_topic(PROCESSING_LOG):
        assert push.next(0) == []
    assert [row[1] for row in logged(play)] == ["((A / B) > 0)"]
    push.close()


def test_a_push_query_of_a_table_reports_the_failed_row(play: Play) -> None:
    play.do(
        "CREATE TABLE t (id VARCHAR PRIMARY KEY, a INT) WITH (KAFKA_TOPIC = 't', PARTITIONS = 1);"
        "INSERT INTO t VALUES ('x', 1);"
    )
    result = play.session.execute("SELECT id, a / 0 AS r FROM t EMIT CHANGES;", {"auto.offset.reset": "earliest"})
    push = result[-1].result
    assert isinstance(push, Push)
    assert push.next(20) == [("x", None)]
    assert [(row[1], *row[3:]) for row in logged(play)] == [("(A / 0)", "t", 0, 0, 1)]
    push.close()


def test_a_push_query_over_the_processing_log_adds_nothing_to_it(play: Play) -> None:
    play.do(ORDERS + RATIOS)
    fed(play, ("o1", 1, 0, "7"))
    text = "SELECT query_id, failures / 0 AS n FROM KSQL_PROCESSING_LOG EMIT CHANGES;"
    push = play.session.execute(text, {"auto.offset.reset": "earliest"})[-1].result
    assert isinstance(push, Push)
    assert push.next(20) == [("CSAS_RATIOS_1", None)]
    push.close()
    assert len(logged(play)) == 1


def test_a_push_query_that_fails_all_the_time_writes_now_and_then(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "REPORT_S", 3600.0)
    play.do(ORDERS)
    push = play.do("SELECT id, a / b AS ratio FROM orders EMIT CHANGES;")
    assert isinstance(push, Push)
    for number in range(4):
        fed(play, (f"o{number}", 1, 0, ""))
        assert push.next(20) == [(f"o{number}", None)]
    assert [row[5] for row in logged(play)] == [0]
    push.close()
    assert [row[5] for row in logged(play)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "statement",
    [
        "DROP STREAM KSQL_PROCESSING_LOG;",
        "ALTER STREAM KSQL_PROCESSING_LOG ADD COLUMN x INT;",
        "INSERT INTO KSQL_PROCESSING_LOG (query_id, message) VALUES ('q', 'm');",
    ],
)
def test_statements_that_change_the_processing_log_are_refused(play: Play, statement: str) -> None:
    with pytest.raises(Refused):
        play.do(statement)


def test_a_stream_of_the_same_name_hides_it(play: Play) -> None:
    play.do(
        "CREATE STREAM ksql_processing_log (x INT) WITH (KAFKA_TOPIC = 'mine', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"
    )
    assert [row[0] for row in play.rows("DESCRIBE ksql_processing_log;")] == ["X"]


def test_the_records_of_the_log_are_plain_json(play: Play) -> None:
    play.do(ORDERS + RATIOS)
    fed(play, ("o1", 1, 0, "7"))
    (batch,) = play.broker.read(PROCESSING_LOG, 0, 0, 1)
    assert batch.column("key")[0].as_py() == b"CSAS_RATIOS_1"
    assert json.loads(batch.column("value")[0].as_py())["EXPRESSION"] == "(A / B)"


def test_a_pull_query_warns_of_what_it_could_not_compute(play: Play) -> None:
    play.do(ORDERS)
    fed(play, ("o1", 1, 0, "7"))
    result = play.do("SELECT id, a / b AS ratio FROM orders;")
    assert result.rows == (("o1", None),)  # type: ignore[union-attr]
    assert "zero" in result.warnings[0]  # type: ignore[union-attr]
