"""What queries, and those who wait for them, do where something is missing: a topic, the JVM, rows that are to come."""

from __future__ import annotations

import pytest

from potok.runtime.batches.failure_cause import JVM_GONE, QueryFailed
from potok.runtime.queries.errors import NotCaughtUp
from potok.spark.start.lost_jvm import JvmGone
from potok.statements import database as databases
from potok.statements.catalog.command_log import CommandLog
from potok.statements.errors import NotRunningHere
from statements.running import Opener, Running


def test_without_its_jvm_a_process_says_so_and_tries_no_more(
    database: Running, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.do("CREATE STREAM b AS SELECT * FROM a;")
    database.check()
    monkeypatch.setattr(databases, "jvm_is_gone", lambda: True)
    database.started[-1]._close(QueryFailed("sql", JVM_GONE))
    database.tend()
    assert len(database.started) == 1
    assert {query.state: JVM_GONE in query.error for query in database.queries()} == {"ERROR": True}
    for ask in (database.check, lambda: database.session.wait_caught_up(0)):
        with pytest.raises(JvmGone, match="Spark's JVM is gone"):
            ask()
    database.close()
    monkeypatch.undo()
    second = opened()
    second.start()
    second.run()
    assert len(second.rows("SELECT * FROM b;")) == 5


def test_a_query_whose_topic_was_deleted_does_not_make_it_again(database: Running, opened: Opener) -> None:
    database.do("CREATE STREAM b AS SELECT * FROM a;")
    database.do("INSERT INTO b SELECT * FROM a;")
    database.run()
    database.broker.delete_topic("a")
    database.run()
    database.tend()
    assert set(database.states().values()) == {"ERROR"}
    assert not database.broker.has_topic("a")
    errors = {query.query_id: query.error for query in database.queries()}
    assert 'the topic "a" that query CSAS_B_1 reads no longer exists' in errors["CSAS_B_1"]
    assert "hint: DROP STREAM B; and create it again" in errors["CSAS_B_1"]
    assert "hint: TERMINATE INSERTQUERY_2; and create it again" in errors["INSERTQUERY_2"]
    database.kill()
    second = opened()
    second.start()
    assert set(second.states().values()) == {"ERROR"}
    assert not second.broker.has_topic("a")


def test_a_query_that_never_ran_does_not_make_a_deleted_topic_again(database: Running, other: Running) -> None:
    other.do("CREATE STREAM b AS SELECT * FROM a;")
    other.do("CREATE STREAM c AS SELECT * FROM b;")
    database.broker.delete_topic("a")
    database.start()
    database.tend()
    assert database.states() == {"CSAS_B_1": "ERROR", "CSAS_C_2": "RUNNING"}
    database.do("CREATE STREAM again (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);")
    database.tend()
    assert database.states() == {"CSAS_B_1": "RUNNING", "CSAS_C_2": "RUNNING"}


def test_who_waits_until_the_queries_have_caught_up_finds_the_rows_of_what_was_written(database: Running) -> None:
    database.session.wait_caught_up(0)
    assert database.started == []
    database.do("CREATE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;")
    with pytest.raises(NotCaughtUp):
        database.session.wait_caught_up(0)
    database.run()
    database.session.wait_caught_up(0)
    assert len(database.rows("SELECT * FROM t;")) == 5


def test_to_wait_for_queries_starts_those_that_do_not_run(database: Running, opened: Opener) -> None:
    database.do("CREATE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;")
    database.kill()
    second = opened()
    with pytest.raises(NotCaughtUp):
        second.session.wait_caught_up(0)
    second.run()
    second.session.wait_caught_up(0)
    assert len(second.rows("SELECT * FROM t;")) == 5


def test_queries_of_another_process_are_waited_for_and_unknown_ones_are_not(database: Running, other: Running) -> None:
    other.do("CREATE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;")
    with pytest.raises(NotRunningHere):
        other.session.wait_caught_up(0)
    database.start()
    database.tend()
    with pytest.raises(NotCaughtUp):
        other.session.wait_caught_up(0)
    database.run()
    other.session.wait_caught_up(0)
    assert len(other.rows("SELECT * FROM t;")) == 5


def test_the_command_log_is_compacted_at_start_and_queries_resume(database: Running, opened: Opener) -> None:
    database.do("CREATE STREAM b AS SELECT * FROM a; DROP STREAM b; CREATE STREAM b AS SELECT * FROM a;")
    database.do("CREATE OR REPLACE STREAM b AS SELECT * FROM a WHERE n > 2; PAUSE CSAS_B_3; RESUME CSAS_B_3;")
    database.run()
    assert len(CommandLog(database.broker).all()) == 7
    database.kill()
    second = opened()
    second.start()
    assert [command.sequence for command in CommandLog(second.broker).all()] == [0, 4]
    assert second.states() == {"CSAS_B_3": "RUNNING"}
    second.do("INSERT INTO a VALUES ('k9', 9);")
    second.run()
    assert second.rows("SELECT n FROM b;") == [(3,), (4,), (9,)]
    assert second.do("CREATE STREAM c AS SELECT * FROM b;").query_id == "CSAS_C_7"
