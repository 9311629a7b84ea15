"""Statements and the queries that they begin, replace and end, whoever sends them and wherever a process dies."""

from __future__ import annotations

import pytest

from potok.errors import LogError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.runtime.queries.lock import QueryTakenOver
from potok.snapshots.tables import known_queries
from potok.sql.errors import Refused, SqlError
from potok.statements import database as databases
from potok.statements.catalog.command_log import Command, CommandLog
from potok.statements.errors import CatalogChanged
from potok.statements.queries import runner as runners
from statements.running import Opener, Running


class Killed(BaseException):
    """The end of a process."""


def test_a_statement_that_lost_against_another_leaves_nothing_and_can_be_sent_again(
    database: Running, other: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = CommandLog.append

    def late(log: CommandLog, command: Command, along: dict[str, bytes | None]) -> None:
        monkeypatch.setattr(CommandLog, "append", append)
        database.start()
        database.run()
        other.do("CREATE TYPE money AS INT;")
        append(log, command, along)

    monkeypatch.setattr(CommandLog, "append", late)
    with pytest.raises(CatalogChanged):
        database.do("CREATE STREAM b AS SELECT * FROM a;")
    assert known_queries(database.broker) == []
    database.do("CREATE STREAM b AS SELECT * FROM a;")
    database.run()
    assert len(database.rows("SELECT * FROM b;")) == 5


def test_a_process_that_dies_before_a_statement_is_written_down_leaves_nothing_of_it(
    database: Running, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = CommandLog.append

    def dies(log: CommandLog, command: Command, along: object) -> None:
        database.run()
        raise Killed

    monkeypatch.setattr(CommandLog, "append", dies)
    with pytest.raises(Killed):
        database.do("CREATE STREAM big AS SELECT * FROM a WHERE n > 3;")
    database.kill()
    monkeypatch.setattr(CommandLog, "append", append)
    second = opened()
    second.do("CREATE STREAM big AS SELECT * FROM a WHERE n > 0;")
    second.run()
    assert len(second.rows("SELECT * FROM big;")) == 4


def test_a_process_that_dies_once_a_statement_is_written_down_leaves_all_of_it(
    database: Running, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(_: object, __: object) -> None:
        raise Killed

    settle = runners.Runner.settle
    database.start()
    monkeypatch.setattr(runners.Runner, "settle", dies)
    with pytest.raises(Killed):
        database.do("CREATE STREAM b AS SELECT * FROM a;")
    database.kill()
    monkeypatch.setattr(runners.Runner, "settle", settle)
    second = opened()
    second.start()
    second.run()
    assert len(second.rows("SELECT * FROM b;")) == 5


def test_a_query_that_cannot_start_is_recorded_and_reported(database: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    database.start()
    shared = database.started[-1]
    add = shared.add

    def full(*_: object, **__: object) -> None:
        raise LogError("no space left", hint="make some")

    monkeypatch.setattr(shared, "add", full)
    done = database.do("CREATE STREAM b AS SELECT * FROM a;")
    assert done.warnings == ("query CSAS_B_1 does not run: no space left",)
    assert database.states() == {"CSAS_B_1": "ERROR"}
    monkeypatch.setattr(shared, "add", add)
    database.tend()
    assert database.states() == {"CSAS_B_1": "RUNNING"}


def test_all_queries_start_again_after_a_commit_that_failed(database: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    database.do("CREATE STREAM b AS SELECT * FROM a;")
    database.do("CREATE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;")
    first = database.started[-1]
    publish = EmbeddedBroker.publish

    def full(*_: object, **__: object) -> None:
        monkeypatch.setattr(EmbeddedBroker, "publish", publish)
        raise LogError("no space left", hint="make some")

    monkeypatch.setattr(EmbeddedBroker, "publish", full)
    with pytest.raises(LogError) as caught:
        database.run()
    first._close(caught.value)
    assert set(database.states().values()) == {"ERROR"}
    database.tend()
    assert len(database.started) == 2
    database.run()
    assert set(database.states().values()) == {"RUNNING"}
    assert len(database.rows("SELECT * FROM b;")) == len(database.rows("SELECT * FROM t;")) == 5


def test_statements_after_the_pause_of_a_failed_query_happen_and_say_so(database: Running) -> None:
    database.session.execute("CREATE STREAM x (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'x', PARTITIONS = 1);")
    query = database.do("CREATE STREAM y AS SELECT * FROM x;").query_id
    database.do("INSERT INTO x VALUES ('1', 1);")
    database.run()
    database.broker.delete_topic("x")
    database.run()
    assert database.states()[query] == "ERROR"
    assert database.do(f"PAUSE {query};").message == "Query paused"
    assert database.states()[query] == "PAUSED"
    database.do("CREATE STREAM w (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'w', PARTITIONS = 1);")
    database.do("DROP STREAM w DELETE TOPIC;")
    assert not database.broker.has_topic("w")


def test_a_table_that_is_dropped_from_another_process_is_removed_by_the_one_that_runs_it(
    database: Running, other: Running
) -> None:
    database.do("CREATE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;")
    database.run()
    assert other.do("DROP TABLE t DELETE TOPIC;").message == "Source T dropped and its topic deleted"
    assert known_queries(database.broker) == ["CTAS_T_1"]
    with pytest.raises(Exception, match="has not yet removed the old topic or query of T"):
        other.do("CREATE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;")
    database.tend()
    assert (known_queries(database.broker), database.broker.has_topic("T"), database.states()) == ([], False, {})
    assert other.do("CREATE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;").query_id == "CTAS_T_3"


def test_what_a_dropped_table_left_is_removed_after_a_crash(
    database: Running, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(_: object) -> None:
        raise Killed

    database.do("CREATE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;")
    database.run()
    remove = databases.remove_left
    monkeypatch.setattr(databases, "remove_left", dies)
    with pytest.raises(Killed):
        database.do("DROP TABLE t DELETE TOPIC;")
    database.kill()
    monkeypatch.setattr(databases, "remove_left", remove)
    assert (known_queries(database.broker), database.broker.has_topic("T")) == (["CTAS_T_1"], True)
    opened().start()
    assert (known_queries(database.broker), database.broker.has_topic("T")) == ([], False)


def test_an_incompatible_replacement_is_refused_from_any_client(database: Running, other: Running) -> None:
    database.do("CREATE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;")
    database.run()
    for sender in (other, database):
        with pytest.raises(Refused, match="another topic, or another key"):
            sender.do("CREATE OR REPLACE TABLE t AS SELECT id, COUNT(*) AS c FROM a GROUP BY id;")
        with pytest.raises(Refused, match="the state of query CTAS_T_1 does not match"):
            sender.do("CREATE OR REPLACE TABLE t AS SELECT n, COUNT(*) AS c, MAX(id) AS m FROM a GROUP BY n;")
    database.tend()
    assert database.states() == {"CTAS_T_1": "RUNNING"}


def test_the_same_text_over_an_altered_stream_is_another_query_also_from_another_process(
    database: Running, other: Running
) -> None:
    database.do("CREATE STREAM b AS SELECT * FROM a;")
    database.run()
    other.do("ALTER STREAM a ADD COLUMN m INT;")
    other.do("CREATE OR REPLACE STREAM b AS SELECT * FROM a;")
    database.tend()
    other.do("INSERT INTO a VALUES ('late', 9, 77);")
    database.run()
    assert database.rows("SELECT * FROM b WHERE id = 'late';") == [("late", 9, 77)]


@pytest.mark.parametrize("given", ["CSAS_B_1", "csas_b_9", "../../x", "a b", "Q1"])
def test_an_id_that_is_taken_or_unfit_is_refused(database: Running, given: str) -> None:
    database.do("CREATE STREAM b AS SELECT * FROM a;")
    database.do("CREATE STREAM c (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'c', PARTITIONS = 1);")
    database.do("INSERT INTO c WITH (QUERY_ID = 'q1') SELECT * FROM a;")
    with pytest.raises(SqlError) as caught:
        database.do(f"INSERT INTO c WITH (QUERY_ID = '{given}') SELECT * FROM a WHERE n > 3;")
    assert caught.value.hint
    assert caught.value.location is not None
    assert database.states() == {"CSAS_B_1": "RUNNING", "Q1": "RUNNING"}


def test_an_id_of_a_query_that_no_statement_started_is_refused(database: Running) -> None:
    from runtime.queries.by_hand import counting

    database.start()
    database.started[-1].add(counting("FOREIGN", "a"))
    database.do("CREATE STREAM c (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'c', PARTITIONS = 1);")
    with pytest.raises(Refused, match="query FOREIGN ran before"):
        database.do("INSERT INTO c WITH (QUERY_ID = 'foreign') SELECT * FROM a;")


def test_an_id_that_was_given_before_starts_from_the_first_record(database: Running) -> None:
    database.do("CREATE STREAM c (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'c', PARTITIONS = 1);")
    database.do("INSERT INTO c WITH (QUERY_ID = 'q1') SELECT * FROM a WHERE n > 100;")
    database.run()
    database.do("TERMINATE q1;")
    assert known_queries(database.broker) == []
    database.do("INSERT INTO c WITH (QUERY_ID = 'q1') SELECT * FROM a;")
    database.run()
    assert len(database.rows("SELECT * FROM c;")) == 5


def test_a_terminated_table_query_keeps_its_rows_and_resumes_where_it_stopped(database: Running) -> None:
    database.do("CREATE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;")
    database.run()
    database.do("TERMINATE CTAS_T_1;")
    assert len(database.rows("SELECT * FROM t;")) == 5
    database.do("INSERT INTO a VALUES ('k', 4);")
    database.do("CREATE OR REPLACE TABLE t AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;")
    database.run()
    assert database.rows("SELECT * FROM t WHERE n = 4;") == [(4, 2)]


def test_a_process_whose_queries_another_one_runs_by_now_says_so_and_does_not_take_them_back(
    database: Running, opened: Opener
) -> None:
    database.do("CREATE STREAM b AS SELECT * FROM a;")
    database.run()
    database.kill()
    second = opened()
    second.start()
    second.do("INSERT INTO a VALUES ('k', 9);")
    with pytest.raises(QueryTakenOver):
        database.run()
    for _ in range(3):
        database.tend()
    with pytest.raises(QueryTakenOver) as refused:
        database.check()
    assert refused.value.exit_code == 3
    assert len(database.started) == 1
    second.run()
    assert len(second.rows("SELECT * FROM b;")) == 6
    assert second.states() == {"CSAS_B_1": "RUNNING"}
    database.close()
    second.do("INSERT INTO a VALUES ('k', 10);")
    second.run()
    assert len(second.rows("SELECT * FROM b;")) == 7
