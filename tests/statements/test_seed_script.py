"""A ksqlDB script as people have it, from its first statement to the last, on one Spark query."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok import SqlSession
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.statements.results import Push, Rows
from potok.testing.outputs import read_outputs

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(300)]

USERS = """
CREATE TABLE users (user_id VARCHAR PRIMARY KEY, name VARCHAR, email VARCHAR)
    WITH (KAFKA_TOPIC = 'users', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
"""

SCRIPT = (Path(__file__).parents[1] / "sql" / "syntax" / "cases" / "orders.sql").read_text()


def test_the_script_runs_from_first_to_last_statement(tmp_path: Path) -> None:
    with SqlSession(tmp_path) as sql:
        sql.execute(USERS)
        *_, pulled, pushed = (executed.result for executed in sql.execute(SCRIPT))
        assert isinstance(pulled, Rows)
        assert pulled.rows == ()
        assert isinstance(pushed, Push)
        sql.execute("INSERT INTO users (user_id, name, email) VALUES ('user_001', 'Ann', 'ann@example.com');")
        shared = sql.database.shared
        assert shared is not None
        shared.wait_caught_up(120)
        for number, (user, amount) in enumerate([("user_001", 120.0), ("user_002", 50.0), ("user_001", 30.0)]):
            row = f"'o{number}', '{user}', {amount}, {1_000 + number}"
            sql.execute(f"INSERT INTO orders (order_id, user_id, amount, ROWTIME) VALUES ({row});")
        shared.wait_caught_up(120)

        counts = sql.rows("SELECT * FROM order_counts WHERE user_id = 'user_001';")
        assert counts == [{"USER_ID": "user_001", "ORDER_COUNT": 2, "TOTAL_AMOUNT": 150.0}]
        [hour] = sql.rows("SELECT * FROM hourly_stats WHERE user_id = 'user_002';")
        assert (hour["ORDER_COUNT"], hour["WINDOW_START"], hour["WINDOW_END"]) == (1, 0, 3_600_000)
        with pushed:
            assert [row[0] for row in pushed.next(30) or ()] == ["o0", "o1", "o2"]
        broker = EmbeddedBroker.shared(tmp_path)
        assert [record.key for record in read_outputs(broker, "HIGH_VALUE_ORDERS")] == ["o0"]
        enriched = [record.value for record in read_outputs(broker, "ENRICHED_ORDERS")]
        assert [(row["ORDER_ID"], row["USER_NAME"]) for row in enriched] == [("o0", "Ann"), ("o2", "Ann")]

    with SqlSession(tmp_path) as again:
        assert again.rows("SELECT order_count FROM order_counts WHERE user_id = 'user_001';") == [{"ORDER_COUNT": 2}]
        assert [row["Query ID"] for row in again.rows("SHOW QUERIES;")] == [
            "CSAS_HIGH_VALUE_ORDERS_2",
            "CTAS_ORDER_COUNTS_3",
            "CTAS_HOURLY_STATS_4",
            "CSAS_ENRICHED_ORDERS_5",
        ]
