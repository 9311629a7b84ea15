"""Changes that are refused, because they would break what others read, or lose what is there."""

from __future__ import annotations

import pytest

from potok.sql.errors import Refused
from statements.playing import Play

SCRIPT = """
    CREATE STREAM a (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);
    CREATE STREAM x AS SELECT id, n, n + 1 AS m FROM a;
    CREATE STREAM y AS SELECT id, n AS k FROM x;
    CREATE STREAM lines WITH (VALUE_FORMAT = 'DELIMITED') AS SELECT id, n FROM a;
"""


def queries(play: Play) -> list[str]:
    return list(play.database.books().queries)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("x WITH (KAFKA_TOPIC = 'other') AS SELECT id, n, n + 1 AS m FROM a", "another topic"),
        ("x AS SELECT n, id FROM a PARTITION BY n", "another key"),
        ("x WITH (VALUE_FORMAT = 'DELIMITED') AS SELECT id, n, n + 1 AS m FROM a", "another format"),
        ("x AS SELECT id, CAST(n AS VARCHAR) AS n, n + 1 AS m FROM a", "N as VARCHAR instead of INTEGER"),
        ("y AS SELECT id, CAST(n AS VARCHAR) AS k FROM x", "K as VARCHAR instead of INTEGER"),
        ("x AS SELECT id, n FROM a", "no M, which CSAS_Y_2 may read"),
        ("lines WITH (VALUE_FORMAT = 'DELIMITED') AS SELECT id, n, n AS more FROM a", "other columns"),
    ],
)
def test_a_query_is_not_replaced_by_one_that_its_readers_could_not_read(play: Play, text: str, refusal: str) -> None:
    play.do(SCRIPT)
    before = play.database.catalog
    with pytest.raises(Refused, match=refusal) as caught:
        play.do(f"CREATE OR REPLACE STREAM {text};")
    assert "DROP STREAM" in caught.value.hint
    assert caught.value.place is not None
    assert play.database.catalog == before


@pytest.mark.parametrize(
    "text",
    ["x AS SELECT id, n, n + 2 AS m, n AS more FROM a WHERE n > 1", "y AS SELECT id, m AS j FROM x"],
)
def test_a_query_is_replaced_by_one_with_more_columns_or_where_nobody_reads_with_others(play: Play, text: str) -> None:
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
    play.do("CREATE OR REPLACE SOURCE TABLE t (id VARCHAR PRIMARY KEY, k BIGINT, z INT) WITH (KAFKA_TOPIC = 't');")
    assert queries(play) == ["CST_T_1"]
    play.do("DROP TABLE t;")
    assert queries(play) == []


def test_a_topic_that_another_stream_is_declared_over_is_not_deleted(play: Play) -> None:
    play.do("CREATE STREAM one (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'g', PARTITIONS = 1);")
    play.do("CREATE STREAM two (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'g');")
    with pytest.raises(Refused, match="the topic g is that of TWO as well") as caught:
        play.do("DROP STREAM one DELETE TOPIC;")
    assert "DROP STREAM TWO;" in caught.value.hint
    play.do("DROP STREAM one;")
    assert play.broker.has_topic("g")
    play.do("DROP STREAM two DELETE TOPIC;")
    assert not play.broker.has_topic("g")
