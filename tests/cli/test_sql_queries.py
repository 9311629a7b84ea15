"""`potok sql` without a server, with queries that run in its own process."""

from __future__ import annotations

from pathlib import Path
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


def test_dead_letters_of_its_queries_are_reported(potok, spark: Any, tmp_path: Path) -> None:
    potok("sql", "-e", SETUP)
    bad = tmp_path / "bad.txt"
    bad.write_text('{"ms": "many"}\nnot even JSON\n')
    potok("produce", "clicks", str(bad))
    made = "CREATE TABLE pages AS SELECT page, SUM(ms) AS ms FROM clicks GROUP BY page;"
    done = potok("sql", "-e", made)
    reported = [line for line in done.err.splitlines() if "dead letters" in line]
    assert reported == [
        "warning: 2 dead letters of query CTAS_PAGES_1: potok dead-letters list --query CTAS_PAGES_1"
    ], done.err
    assert potok("tables", "get", "pages", "home").out == '{"MS": 30}\n'
    assert len(potok("dead-letters", "list", "--query", "CTAS_PAGES_1", "--json").objects) == 2
    # With --json they are reported next to the results.
    bad.write_text("worse\n")
    potok("produce", "clicks", str(bad))
    again = potok("sql", "--json", "-e", "CREATE STREAM others AS SELECT * FROM clicks;", "-e", "SELECT * FROM pages;")
    assert "warning: 1 dead letter of query CTAS_PAGES_1" in again.err

    push = "SET 'auto.offset.reset' = 'earliest'; "
    row = potok("sql", "-e", push + "SELECT page, ms FROM clicks EMIT CHANGES LIMIT 3;")
    assert "3 rows" in row.err
    grouped = potok("sql", "-e", push + "SELECT page, COUNT(*) AS n FROM clicks GROUP BY page EMIT CHANGES LIMIT 2;")
    assert "warning: 3 records could not be processed" in grouped.err, grouped.err
