"""Changes that are refused, because they would break what others read, or lose what is there."""

from __future__ import annotations

import pytest

from potok.sql.errors import Refused, SourceLocation
from potok.statements.errors import UnknownQuery
from statements.playing import Play

SCRIPT = """
    CREATE STREAM a (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);
    CREATE STREAM x AS SELECT id, n, n + 1 AS m FROM a;
    CREATE STREAM y AS SELECT id, n AS k FROM x;
    CREATE STREAM lines WITH (VALUE_FORMAT = 'DELIMITED') AS SELECT id, n FROM a;
"""


def queries(play: Play) -> list[str]:
    return list(play.database.catalog_state().queries)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("x WITH (KAFKA_TOPIC = 'other') AS SELECT id, n, n + 1 AS m FROM a", "another topic"),
        ("x AS SELECT n, id FROM a PARTITION BY n", "another key"),
        ("x WITH (VALUE_FORMAT = 'DELIMITED') AS SELECT id, n, n + 1 AS m FROM a", "another format"),
        ("x AS SELECT id, CAST(n AS VARCHAR) AS n, n + 1 AS m FROM a", "N as VARCHAR instead of INTEGER"),
        ("y AS SELECT id, CAST(n AS VARCHAR) AS k FROM x", "K as VARCHAR instead of INTEGER"),
        ("x AS SELECT id, n FROM a", "no column M"),
        ("lines WITH (VALUE_FORMAT = 'DELIMITED') AS SELECT id, n, n AS more FROM a", "other columns"),
    ],
)
def test_a_query_is_not_replaced_by_one_that_its_readers_could_not_read(play: Play, text: str, refusal: str) -> None:
    play.do(SCRIPT)
    before = play.database.catalog
    with pytest.raises(Refused, match=refusal) as caught:
        play.do(f"CREATE OR REPLACE STREAM {text};")
    assert "DROP STREAM" in caught.value.hint
    assert caught.value.location is not None
    assert play.database.catalog == before


@pytest.mark.parametrize(
    "text",
    ["x AS SELECT id, n, n + 2 AS m, n AS more FROM a WHERE n > 1", "y AS SELECT id, m AS k, n FROM x"],
)
def test_a_query_is_replaced_by_one_with_other_values_another_condition_or_more_columns(play: Play, text: str) -> None:
    play.do(SCRIPT)
    play.do(f"CREATE OR REPLACE STREAM {text};")
    assert sorted(queries(play)) == ["CSAS_LINES_3", "CSAS_X_1", "CSAS_Y_2"]


def test_a_stream_that_is_declared_in_the_place_of_a_query_ends_that_query(play: Play) -> None:
    play.do(SCRIPT)
    play.do("CREATE OR REPLACE STREAM y (id VARCHAR KEY, k INT) WITH (KAFKA_TOPIC = 'Y');")
    assert "CSAS_Y_2" not in queries(play)
    play.do("DROP STREAM y;")


def test_a_table_of_a_topic_that_is_declared_again_has_one_query(play: Play) -> None:
    play.do("CREATE SOURCE TABLE t (id VARCHAR PRIMARY KEY, k BIGINT) WITH (KAFKA_TOPIC = 't', PARTITIONS = 1);")
    play.do("DROP TABLE t;")
    play.do("CREATE SOURCE TABLE t (id VARCHAR PRIMARY KEY, k BIGINT, z INT) WITH (KAFKA_TOPIC = 't');")
    assert queries(play) == ["CST_T_2"]
    play.do("DROP TABLE t;")
    assert queries(play) == []


def test_a_topic_that_another_stream_is_declared_over_is_not_deleted(play: Play) -> None:
    play.do("CREATE STREAM one (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'g', PARTITIONS = 1);")
    play.do("CREATE STREAM two (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'g');")
    with pytest.raises(Refused, match="topic g is also used by TWO") as caught:
        play.do("DROP STREAM one DELETE TOPIC;")
    assert "DROP STREAM TWO;" in caught.value.hint
    play.do("DROP STREAM one;")
    assert play.broker.has_topic("g")
    play.do("DROP STREAM two DELETE TOPIC;")
    assert not play.broker.has_topic("g")


def test_a_table_may_get_columns_that_its_rows_have_no_value_in(play: Play) -> None:
    play.do("CREATE TABLE a (id VARCHAR PRIMARY KEY, v INT, w DOUBLE) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);")
    play.do("CREATE TABLE t AS SELECT id, v FROM a;")
    play.do("INSERT INTO a VALUES ('x', 1, 1.5); INSERT INTO a VALUES ('y', 2, 2.5);")
    play.run()
    for wrong in ("w, v", "v + 0.5 AS v, w"):
        with pytest.raises(Refused):
            play.do(f"CREATE OR REPLACE TABLE t AS SELECT id, {wrong} FROM a;")
    play.do("CREATE OR REPLACE TABLE t AS SELECT id, v, w FROM a;")
    play.leave("CTAS_T")
    play.do("INSERT INTO a VALUES ('y', 3, 3.5);")
    play.run()
    assert play.rows("SELECT * FROM t;") == [("x", 1, None), ("y", 3, 3.5)]
    assert play.rows("SELECT w FROM t WHERE id = 'x';") == [(None,)]
    play.do("CREATE TABLE n AS SELECT v, COUNT(w) AS c FROM t GROUP BY v;")
    play.do("INSERT INTO a VALUES ('x', 3, 4.5);")
    play.run()
    assert play.rows("SELECT * FROM n;") == [(1, 0), (2, 0), (3, 2)]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("SUM(w)", "its aggregates were COUNT BIGINT as C and would be COUNT BIGINT, SUM DOUBLE as C, S"),
        ("COLLECT_LIST(w)", "its rows would be stored differently"),
    ],
)
def test_incompatible_state_is_reported_in_terms_of_statements(play: Play, more: str, reason: str) -> None:
    play.do("CREATE STREAM a (id VARCHAR KEY, w DOUBLE) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);")
    play.do("CREATE TABLE t AS SELECT id, COUNT(*) AS c FROM a GROUP BY id;")
    play.do("INSERT INTO a (id, w) VALUES ('x', 1.0);")
    play.run()
    with pytest.raises(Refused) as caught:
        play.do(f"CREATE OR REPLACE TABLE t AS SELECT id, COUNT(*) AS c, {more} AS s FROM a GROUP BY id;")
    assert caught.value.message == f"the state of query CTAS_T_1 does not match: {reason}"


def test_an_aggregate_more_does_not_fit_what_was_kept_for_the_others(play: Play) -> None:
    play.do("CREATE STREAM a (id VARCHAR KEY, w DOUBLE) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);")
    play.do("CREATE TABLE t AS SELECT id, COLLECT_LIST(w) AS l FROM a GROUP BY id;")
    play.do("INSERT INTO a (id, w) VALUES ('x', 1.0);")
    play.run()
    with pytest.raises(Refused, match="its columns were L ARRAY<DOUBLE> and would be L ARRAY<DOUBLE>, S ARRAY<DOUBLE>"):
        play.do("CREATE OR REPLACE TABLE t AS SELECT id, COLLECT_LIST(w) AS l, COLLECT_SET(w) AS s FROM a GROUP BY id;")


@pytest.mark.parametrize(
    ("query_id", "hint"),
    [
        ("CSAS_Z_9", "the queries are CSAS_X_1, CSAS_Y_2, CSAS_LINES_3"),
        ("CSAS_LINE_3", "did you mean CSAS_LINES_3?"),
        ("CSAS_LINES_12", "did you mean CSAS_LINES_3?"),
        ("LINES", "did you mean CSAS_LINES_3?"),
        ("INSERTQUERY_3", "the queries are CSAS_X_1, CSAS_Y_2, CSAS_LINES_3"),
    ],
)
def test_only_a_query_of_nearly_the_same_name_is_suggested(play: Play, query_id: str, hint: str) -> None:
    play.do(SCRIPT)
    with pytest.raises(UnknownQuery) as caught:
        play.do(f"TERMINATE {query_id};")
    assert caught.value.hint == hint


def test_of_many_queries_a_few_are_named(play: Play) -> None:
    play.do(SCRIPT + "".join(f"CREATE STREAM s{n} AS SELECT * FROM a;" for n in range(4)))
    with pytest.raises(UnknownQuery) as caught:
        play.do("PAUSE nobody;")
    assert caught.value.hint == (
        "the queries are CSAS_X_1, CSAS_Y_2, CSAS_LINES_3, CSAS_S0_4, CSAS_S1_5 and 2 more: SHOW QUERIES"
    )


@pytest.mark.parametrize("again", ["TERMINATE csas_y_2;", "EXPLAIN csas_y_2;"])
def test_a_terminated_query_is_reported_as_terminated(play: Play, again: str) -> None:
    play.do(f"{SCRIPT} TERMINATE csas_y_2;")
    with pytest.raises(UnknownQuery) as caught:
        play.do(again)
    assert caught.value.hint == "it was terminated; CREATE OR REPLACE Y resumes it"
    play.do("CREATE OR REPLACE STREAM y AS SELECT id, n AS k FROM x;")
    assert "CSAS_Y_2" in queries(play)


@pytest.mark.parametrize(
    ("statement", "line", "column", "marked"),
    [
        ("CREATE STREAM s (n INT)\n  WITH (KAFKA_TOPIC = 's',\n    FOO = 'x');", 3, 5, "FOO"),
        ("CREATE STREAM s (n INT)\n  WITH (KAFKA_TOPIC = 's',\n    VALUE_FORMAT = 'JSN');", 3, 20, "'JSN'"),
        ("CREATE STREAM s (n INT) WITH (KAFKA_TOPIC='s', PARTITIONS = -1);", 1, 61, "-1"),
        ("CREATE STREAM s (n INT) WITH (KAFKA_TOPIC='s', WRAP_SINGLE_VALUE='no');", 1, 66, "'no'"),
        ("CREATE STREAM s (n INT) WITH (KAFKA_TOPIC='s', VALUE_DELIMITER='|');", 1, 48, "VALUE_DELIMITER"),
        ("CREATE STREAM s (n INT) WITH (KAFKA_TOPIC='s', TIMESTAMP='m');", 1, 58, "'m'"),
        ("CREATE STREAM s (n INT, m INT) WITH (KAFKA_TOPIC='s', FORMAT='KAFKA');", 1, 62, "'KAFKA'"),
        ("CREATE STREAM s (n INT) WITH (KAFKA_TOPIC='s', WINDOW_SIZE='1 DAY');", 1, 48, "WINDOW_SIZE"),
        ("CREATE STREAM s WITH (VALUE_FORMAT='KAFKA') AS SELECT id, n, n AS m FROM a;", 1, 36, "'KAFKA'"),
        ("CREATE STREAM s WITH (KAFKA_TOPIC='a b') AS SELECT id, n FROM a;", 1, 35, "'a b'"),
        ("INSERT INTO x WITH (QUERY_ID='a b') SELECT id, n, n AS m FROM a;", 1, 30, "'a b'"),
        ("ASSERT TOPIC 'a' WITH (COLOUR='red');", 1, 24, "COLOUR"),
    ],
)
def test_a_wrong_property_is_marked_itself(play: Play, statement: str, line: int, column: int, marked: str) -> None:
    play.do(SCRIPT)
    with pytest.raises(Refused) as caught:
        play.do(statement)
    assert caught.value.location == SourceLocation(line, column, len(marked))
    text, below = str(caught.value).splitlines()[1:3]
    assert text[below.index("^") : below.rindex("^") + 1] == marked


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
