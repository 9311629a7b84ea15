"""Which changes of a query that runs CREATE OR REPLACE accepts: those that ksqlDB accepts."""

from __future__ import annotations

import pytest

from potok.sql.errors import Refused
from statements.playing import Play

SOURCES = """
    CREATE STREAM s (id INT KEY, a INT, b INT, l ARRAY<INT>)
      WITH (KAFKA_TOPIC = 's', KEY_FORMAT = 'JSON', PARTITIONS = 1);
    CREATE STREAM other (id INT KEY, a INT, b INT) WITH (KAFKA_TOPIC = 'other', KEY_FORMAT = 'JSON', PARTITIONS = 1);
    CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT) WITH (KAFKA_TOPIC = 't', KEY_FORMAT = 'JSON', PARTITIONS = 1);
"""


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        *(
            ("STREAM", "SELECT id, a FROM s", "SELECT id, a FROM s WHERE a > 0"),
            ("STREAM", "SELECT id, a FROM s WHERE a > 0", "SELECT id, a FROM s"),
            ("STREAM", "SELECT id, a FROM s WHERE a > 0", "SELECT id, a, a + b AS c FROM s WHERE b < 0"),
            ("STREAM", "SELECT id, a FROM s", "SELECT * FROM s"),
            ("STREAM", "SELECT id, a FROM s PARTITION BY a", "SELECT id, a FROM s WHERE a > 0 PARTITION BY a"),
        ),
        *(
            ("TABLE", "SELECT id, a FROM t", "SELECT id, a, b FROM t WHERE a > 0"),
            ("TABLE", "SELECT id, a FROM t WHERE a > 0", "SELECT id, a FROM t"),
        ),
        *(
            (
                "TABLE",
                "SELECT id, COUNT(*) AS n FROM s WHERE a >= 0 GROUP BY id",
                "SELECT id, COUNT(*) AS n FROM s WHERE a > 0 GROUP BY id",
            ),
            (
                "TABLE",
                "SELECT id, COUNT(a) AS n FROM s WHERE a >= 0 GROUP BY id",
                "SELECT id, COUNT(a) AS n FROM s WHERE id > 1 GROUP BY id",
            ),
            (
                "TABLE",
                "SELECT id, COUNT(a) AS n FROM s WHERE a > 0 GROUP BY id",
                "SELECT id, COUNT(a) AS n FROM s GROUP BY id",
            ),
        ),
    ],
)
def test_values_conditions_and_more_columns_may_change(play: Play, kind: str, before: str, after: str) -> None:
    play.do(f"{SOURCES} CREATE {kind} x AS {before};")
    play.do(f"CREATE OR REPLACE {kind} x AS {after};")


JOINED = "SELECT s.id, s.a, t.b FROM s JOIN t ON s.id = t.id"
WINDOWED = "SELECT id, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 30 SECONDS)"


@pytest.mark.parametrize(
    ("kind", "before", "after", "refusal"),
    [
        *(
            ("STREAM", "SELECT id, a, b FROM s", "SELECT id, a FROM s", "no column B"),
            ("STREAM", "SELECT id, a, b FROM s", "SELECT id, a, b AS c FROM s", "no column B"),
            ("STREAM", "SELECT id, a, b FROM s", "SELECT id, a, CAST(b AS STRING) AS b FROM s", "B as VARCHAR"),
            ("STREAM", "SELECT id, a, b FROM s", "SELECT id, b, a FROM s", "A in another position"),
            ("STREAM", "SELECT id, a, b, a + 1 AS c FROM s", "SELECT * FROM s", "no column C"),
            ("TABLE", "SELECT id, a, b FROM t", "SELECT id, a FROM t", "no column B"),
        ),
        *(
            ("STREAM", "SELECT id, a, b FROM s", "SELECT id, a, b FROM other", "another source, OTHER"),
            ("STREAM", "SELECT * FROM s PARTITION BY a", "SELECT * FROM s PARTITION BY b", "another key"),
            ("STREAM", JOINED, f"{JOINED} WHERE s.a > 0", "a query with a join"),
            ("STREAM", JOINED, JOINED, "a query with a join"),
            (
                "STREAM",
                "SELECT id, EXPLODE(l) AS e FROM s",
                "SELECT id, EXPLODE(l) AS e FROM s WHERE a > 0",
                "table func",
            ),
        ),
        *(
            ("TABLE", f"{WINDOWED} GROUP BY id", f"{WINDOWED} WHERE a > 0 GROUP BY id", "a query with a window"),
            (
                "TABLE",
                "SELECT a, COUNT(*) AS n FROM t GROUP BY a",
                "SELECT a, COUNT(*) AS n FROM t WHERE b > 0 GROUP BY a",
                "an aggregate of a table",
            ),
            (
                "TABLE",
                "SELECT a, b, COUNT(*) AS n FROM s GROUP BY a, b",
                "SELECT a, b, COUNT(*) AS n FROM s GROUP BY b, a",
                "another (key|GROUP BY)",
            ),
            (
                "TABLE",
                "SELECT id, COUNT(*) AS n FROM s GROUP BY id",
                "SELECT id, COUNT(a) AS n FROM s GROUP BY id",
                "other aggregates",
            ),
            (
                "TABLE",
                "SELECT id, COUNT(*) AS n FROM s WHERE a > 0 GROUP BY id",
                "SELECT id, COUNT(*) AS n FROM s GROUP BY id",
                "other columns to aggregate: A",
            ),
            (
                "TABLE",
                "SELECT id, COUNT(*) AS n FROM s GROUP BY id",
                "SELECT id, COUNT(*) AS n FROM s WHERE a > 0 GROUP BY id",
                "other columns to aggregate: A",
            ),
        ),
    ],
)
def test_what_moves_groups_or_keeps_records_may_not(
    play: Play, kind: str, before: str, after: str, refusal: str
) -> None:
    play.do(f"{SOURCES} CREATE {kind} x AS {before};")
    catalog = play.database.catalog
    with pytest.raises(Refused, match=refusal) as caught:
        play.do(f"CREATE OR REPLACE {kind} x AS {after};")
    assert f"DROP {kind} X" in caught.value.hint
    assert play.database.catalog == catalog


def test_another_timestamp_column_is_refused(play: Play) -> None:
    play.do(
        "CREATE STREAM d (id INT KEY, a BIGINT, b BIGINT) WITH (KAFKA_TOPIC = 'd', TIMESTAMP = 'a', PARTITIONS = 1);"
    )
    play.do("CREATE STREAM x WITH (TIMESTAMP = 'a') AS SELECT * FROM d;")
    with pytest.raises(Refused, match="another TIMESTAMP column"):
        play.do(
            "CREATE OR REPLACE STREAM d (id INT KEY, a BIGINT, b BIGINT) WITH (KAFKA_TOPIC = 'd', TIMESTAMP = 'b');"
        )
    with pytest.raises(Refused, match="another TIMESTAMP column"):
        play.do("CREATE OR REPLACE STREAM x WITH (TIMESTAMP = 'b') AS SELECT * FROM d;")
