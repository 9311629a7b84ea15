"""What the dry run of a script reports."""

from __future__ import annotations

import pytest

from statements.playing import Play

SCRIPT = """
    CREATE STREAM a (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);
    CREATE TYPE money AS STRUCT<cents INT>;
    CREATE STREAM b AS SELECT id, n + 1 AS m FROM a;
    CREATE TABLE t AS SELECT id, COUNT(*) AS c FROM b GROUP BY id;
    INSERT INTO b WITH (QUERY_ID = 'again') SELECT id, n AS m FROM a;
"""


def reported(play: Play, text: str) -> list[tuple[int, str]]:
    """The line and the message of each mistake."""
    return [(error.location.line if error.location else 0, error.message) for error in play.session.check(text)]


def test_a_script_that_was_carried_out_may_be_checked_again(play: Play) -> None:
    assert reported(play, SCRIPT) == []
    play.do(SCRIPT)
    assert reported(play, SCRIPT) == []
    assert reported(play, SCRIPT.replace("n + 1 AS m", "n+1   AS M")) == []


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ("n INT", "n BIGINT", 2, "there is a stream A already"),
        ("cents INT", "cents BIGINT", 3, "type MONEY already exists"),
        ("n + 1", "n + 2", 4, "there is a stream B already"),
        ("COUNT(*)", "COUNT(m)", 5, "there is a table T already"),
        ("n AS m FROM", "n + 0 AS m FROM", 6, "query AGAIN already exists"),
    ],
)
def test_a_repeated_definition_that_differs_is_an_error(
    play: Play, before: str, after: str, line: int, message: str
) -> None:
    play.do(SCRIPT)
    assert reported(play, SCRIPT.replace(before, after)) == [(line, message)]


def test_creating_a_source_twice_in_a_script_is_an_error(play: Play) -> None:
    first = SCRIPT.strip().splitlines()[0]
    assert reported(play, f"{first}\n{first}") == [(2, "there is a stream A already")]
    play.do(SCRIPT)
    assert reported(play, f"{first}\n{first}") == [(2, "there is a stream A already")]


def test_adding_a_column_can_be_checked_repeatedly_but_not_executed_twice(play: Play) -> None:
    created, added = SCRIPT.strip().splitlines()[0], "ALTER STREAM a ADD COLUMN y INT, ADD COLUMN z VARCHAR;"
    for carried_out in ("", created + added):
        play.session.execute(carried_out)
        assert reported(play, f"{created}\n{added}\nSELECT y FROM a EMIT CHANGES;") == []
        assert reported(play, f"{created}\n{added}\n{added}") == [(3, "there is a column Y already")]
        again = f"{created}\n{added}\nDROP STREAM a;\n{created}\n{added}\nSELECT y FROM a EMIT CHANGES;"
        assert reported(play, again) == []
        assert reported(play, f"{again}\n{added}") == [(7, "there is a column Y already")]
    other = added.replace("y INT", "y BIGINT")
    assert reported(play, f"{created}\n{other}") == [(2, "there is a column Y already")]
    assert reported(play, f"{created}\n{added.replace('STREAM', 'TABLE')}") == [(2, "A is a stream")]


@pytest.mark.parametrize(
    ("wrong", "mistake"),
    [
        ("CREATE STREAM a (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'a', FOO = 1);", "WITH has no property FOO"),
        ("CREATE STREAM a (id VARCHAR KYE, n INT) WITH (KAFKA_TOPIC = 'a');", "expected a comma"),
        ("CRAETE STREAM a (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'a');", "no statement begins with CRAETE"),
        ("CREATE STREAM a AS SELECT * FROM nothing;", "there is no stream or table NOTHING"),
    ],
)
def test_what_builds_on_a_wrong_statement_is_not_blamed_for_it(play: Play, wrong: str, mistake: str) -> None:
    followers = """
        CREATE STREAM b AS SELECT id, n FROM a;
        SELECT * FROM b EMIT CHANGES;
        INSERT INTO a SELECT * FROM b;
        DROP STREAM a;
    """
    ((line, message),) = reported(play, wrong + followers)
    assert (line, message.startswith(mistake)) == (1, True)


def test_its_own_error_is_reported_as_well(play: Play) -> None:
    script = "CREATE STREAM a (n INTT) WITH (KAFKA_TOPIC = 'a');\nCREATE STREAM b WITH (FOO = 1) AS SELECT * FROM a;"
    assert [line for line, _ in reported(play, script)] == [1, 2]
    script = "CREATE STREAM a (n INTT) WITH (KAFKA_TOPIC = 'a');\nSELECT * FROM other EMIT CHANGES;"
    assert [line for line, _ in reported(play, script)] == [1, 2]


def test_existing_sources_cause_no_errors_in_dependents_of_a_wrong_statement(play: Play) -> None:
    play.do(SCRIPT)
    script = "CREATE STREAM a (other INT) WITH (KAFKA_TOPIC = 'a');\nSELECT other FROM a EMIT CHANGES;"
    assert reported(play, script) == [(1, "there is a stream A already")]


def test_a_statement_that_mends_it_counts(play: Play) -> None:
    script = """CREATE STREAM a (n INTT) WITH (KAFKA_TOPIC = 'a');
        CREATE STREAM a (n INT) WITH (KAFKA_TOPIC = 'a');
        SELECT other FROM a EMIT CHANGES;"""
    assert [line for line, _ in reported(play, script)] == [1, 3]
