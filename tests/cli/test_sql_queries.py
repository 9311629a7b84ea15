"""`potok sql` without a server, with queries that run in its own process."""

from __future__ import annotations

from typing import Any

SETUP = """
    CREATE STREAM clicks (page VARCHAR KEY, ms INT) WITH (KAFKA_TOPIC = 'clicks', VALUE_FORMAT = 'JSON');
    INSERT INTO clicks VALUES ('home', 10);
    INSERT INTO clicks VALUES ('home', 20);
    INSERT INTO clicks VALUES ('help', 5);
"""


def test_a_script_reads_what_its_queries_made_of_all_records(potok, spark: Any) -> None:
    done = potok(
        *("sql", "-e", SETUP, "-e", "CREATE TABLE pages AS SELECT page, SUM(ms) AS ms FROM clicks GROUP BY page;"),
        *("-e", "SELECT * FROM pages ORDER BY page;"),
    )
    assert done.code == 0, done.err
    assert done.out.splitlines()[3:5] == ["│ help │  5 │", "│ home │ 30 │"]
    assert "Created query with ID CTAS_PAGES_" in done.err

    # The queries have stopped with the process, and their tables can be read without Spark.
    (again,) = potok("sql", "--json", "-e", "SELECT ms FROM pages WHERE page = 'home'").objects
    assert again["rows"] == [{"MS": 30}]


def test_a_push_query_streams_to_its_limit(potok, spark: Any) -> None:
    push = "SET 'auto.offset.reset' = 'earliest'; SELECT page, ms FROM clicks WHERE ms > 5 EMIT CHANGES LIMIT 2;"
    done = potok("sql", "-e", SETUP, "-e", push)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "┌──────┬────┐",
        "│ PAGE │ MS │",
        "├──────┼────┤",
        "│ home │ 10 │",
        "│ home │ 20 │",
        "└──────┴────┘",
    ]
    assert "2 rows; the query has ended" in done.err
