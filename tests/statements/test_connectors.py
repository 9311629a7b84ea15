"""Connectors that SQL statements define."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.log.waiting import until
from tests.sources.test_appender import values

from potok.server.server import Server
from potok.sql.errors import SqlError
from potok.statements.results import Rows
from potok.statements.session import SqlSession
from statements.running import Running

HOOKS = """CREATE SOURCE CONNECTOR hooks WITH ('type' = 'webhook', 'listen' = '127.0.0.1:0', 'topic' = 'hooks',
    'overload.when_full' = 'reject', 'overload.max_records' = '500');"""


@contextmanager
def database(directory: Path) -> Iterator[Running]:
    with Running(directory, connects=True) as found:
        found.start()
        yield found


def rows(found: Running, text: str) -> list[tuple[Any, ...]]:
    result = found.session.execute(text)[-1].result
    assert isinstance(result, Rows)
    return list(result.rows)


def details(found: Running, name: str) -> dict[str, Any]:
    result = found.session.execute(f"DESCRIBE CONNECTOR {name};")[-1].result
    assert isinstance(result, Rows)
    return dict(result.details)


def test_a_connector_lands_what_it_receives_and_survives_a_restart_until_it_is_dropped(tmp_path: Path) -> None:
    with database(tmp_path) as found:
        assert found.do(HOOKS).message == "Created connector HOOKS"
        assert rows(found, "SHOW CONNECTORS;") == [("HOOKS", "SOURCE", "webhook", "RUNNING (1/1 tasks RUNNING)")]
        assert httpx.post(f"http://{details(found, 'hooks')['Address']}/", json={"n": 1}).status_code == 202
        assert details(found, "hooks")["Landed"] == 1
    with database(tmp_path) as found:
        address = details(found, "hooks")["Address"]
        assert httpx.post(f"http://{address}/", json={"n": 2}).status_code == 202
        assert values(found.broker, "hooks") == [b'{"n":1}', b'{"n":2}']
        found.do("DROP CONNECTOR hooks;")
        assert rows(found, "SHOW CONNECTORS;") == []
        with pytest.raises(httpx.ConnectError):
            httpx.post(f"http://{address}/", json={"n": 3})
    with database(tmp_path) as found:
        assert rows(found, "SHOW CONNECTORS;") == []


def test_another_process_defines_connectors_and_the_one_that_runs_the_queries_runs_them(tmp_path: Path) -> None:
    with database(tmp_path) as found, Running(tmp_path, runs=False, connects=True) as other:
        other.do(
            "CREATE SOURCE CONNECTOR m WITH ('connector.class'='statsd', 'listen'='127.0.0.1:0', 'topic'='m',"
            " 'overload.when_full'='drop_oldest');"
        )
        assert rows(other, "SHOW SOURCE CONNECTORS;") == [("M", "SOURCE", "statsd", "UNASSIGNED (0/1 tasks RUNNING)")]
        found.tend()
        host, _, port = details(found, "m")["Address"].rpartition(":")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"a:1|c", (host, int(port)))
        until(lambda: details(found, "m")["Landed"] == 1)


def test_a_connector_that_cannot_start_is_shown_with_the_reason(tmp_path: Path) -> None:
    with socket.socket() as taken, database(tmp_path) as found:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found.do(f"CREATE SOURCE CONNECTOR l WITH ('type'='tcp', 'topic'='t', 'listen'='127.0.0.1:{port}');")
        [(_, state, error)] = rows(found, "DESCRIBE CONNECTOR l;")
        assert state == "FAILED"
        assert "address already in use" in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE SOURCE CONNECTOR c WITH ('topic'='t');", "there is no type"),
        ("CREATE SOURCE CONNECTOR c WITH ('type'='tcp', 'topic'='t');", 'a tcp listener needs the option "listen"'),
        ("CREATE SOURCE CONNECTOR c WITH ('type'='tcp', 'topic'='t', 'lisen'='a:1');", 'no option "lisen"'),
        (
            "CREATE SOURCE CONNECTOR c WITH ('type'='udp', 'topic'='t', 'listen'='127.0.0.1:0');",
            "UDP has no flow control",
        ),
        (
            "CREATE SOURCE CONNECTOR c WITH ('type'='files', 'topic'='t', 'path'='/etc/passwd');",
            "a server does not read files for its clients",
        ),
        (
            "CREATE SOURCE CONNECTOR c WITH ('type'='http', 'topic'='t', 'url'='http://h/', 'headers'='A: env:HOME');",
            "a server does not read files or other environment variables",
        ),
        ("DROP CONNECTOR nothing;", "there is no connector NOTHING"),
        ("DESCRIBE CONNECTOR nothing;", "there is no connector NOTHING"),
        (HOOKS + HOOKS, "connector HOOKS already exists"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with database(tmp_path) as found, pytest.raises(SqlError, match=message):
        found.session.execute(text)


def test_a_process_without_listeners_refuses_connectors(tmp_path: Path) -> None:
    with Running(tmp_path) as found, pytest.raises(SqlError, match="this process cannot run connectors"):
        found.do(HOOKS)


def test_statements_that_have_nothing_to_do_say_so(tmp_path: Path) -> None:
    with database(tmp_path) as found:
        assert found.do("DROP CONNECTOR IF EXISTS hooks;").message == "Connector HOOKS does not exist"
        found.do(HOOKS)
        again = HOOKS.replace("CONNECTOR", "CONNECTOR IF NOT EXISTS", 1)
        assert found.do(again).message == "Connector HOOKS already exists"
        assert found.session.check(HOOKS) == []
        assert [str(error.message) for error in SqlSession(found).check("DROP CONNECTOR x;")] == [
            "there is no connector X"
        ]


def test_compaction_keeps_the_connectors_that_are_left(tmp_path: Path) -> None:
    udp = "CREATE SOURCE CONNECTOR u WITH ('type'='tcp', 'listen'='127.0.0.1:0', 'topic'='u');"
    with database(tmp_path) as found:
        found.do(HOOKS)
        found.do(udp)
        found.do("DROP CONNECTOR hooks;")
    with database(tmp_path) as found:
        assert [name for name, *_ in rows(found, "SHOW CONNECTORS;")] == ["U"]
        assert len(found._commands.all()) == 1


def test_the_entities_are_those_of_ksqldb(tmp_path: Path) -> None:
    with database(tmp_path) as found, Server(found, port=0) as server, httpx.Client(base_url=server.url) as client:

        def ksql(text: str) -> Any:
            answer = client.post("/ksql", json={"ksql": text})
            assert answer.status_code == 200, answer.text
            return answer.json()[0]

        created = ksql(HOOKS)
        assert created["@type"] == "connector_info"
        assert (created["info"]["name"], created["info"]["type"]) == ("HOOKS", "source")
        assert created["info"]["tasks"] == [{"connector": "HOOKS", "task": 0}]
        assert created["info"]["config"]["overload.max_records"] == "500"
        listed = ksql("SHOW CONNECTORS;")
        assert listed["@type"] == "connector_list"
        assert listed["connectors"] == [
            {"name": "HOOKS", "type": "source", "className": "webhook", "state": "RUNNING (1/1 tasks RUNNING)"}
        ]
        described = ksql("DESCRIBE CONNECTOR hooks;")
        assert described["@type"] == "connector_description"
        assert described["connectorClass"] == "webhook"
        assert described["status"]["tasks"] == [{"id": 0, "state": "RUNNING", "worker_id": "potok:0", "trace": ""}]
        assert described["topics"] == ["hooks"]
        polled = ksql(
            "CREATE SOURCE CONNECTOR p WITH ('type'='http', 'topic'='p', 'every'='1 hour', "
            "'url'='http://ann:s3cret@127.0.0.1:1/', 'headers'='Authorization: t0ken');"
        )
        assert polled["info"]["config"]["headers"] == "***"
        assert "s3cret" not in polled["info"]["config"]["url"]
        dropped = ksql("DROP CONNECTOR hooks;")
        assert (dropped["@type"], dropped["connectorName"]) == ("drop_connector", "HOOKS")
        assert ksql("DROP CONNECTOR IF EXISTS hooks;")["@type"] == "warning_entity"
