from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from potok.cli.prompt.targets import remote as remotes
from potok.cli.prompt.targets.http import NoServer, ServerRefused, StatementRefused
from potok.cli.prompt.targets.remote import Remote
from potok.errors import SetupError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.server.access.tokens import Tokens
from potok.server.server import Server
from potok.settings import Settings
from potok.sql.syntax.parse import parse_script
from potok.sql.types import VARCHAR, decimal
from potok.statements.database import Database
from potok.statements.results import Done, Push, Result, Rows

SETUP = """
    CREATE STREAM orders (id VARCHAR KEY, amount DECIMAL(6, 2), at TIMESTAMP)
        WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON');
    INSERT INTO orders VALUES ('a', 1.50, '2024-01-01T00:00:00');
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    broker = EmbeddedBroker.shared(tmp_path / "log")
    with Database(broker, Settings(), runs=False) as database:
        yield database
    broker.close()


@pytest.fixture
def remote(database: Database) -> Iterator[Remote]:
    with Server(database, port=0) as server:
        yield Remote(server.url, None)


def run(remote: Remote, text: str) -> list[Result]:
    return [remote.run(parsed) for parsed in parse_script(text, remote.variables)]


def test_statements_return_what_they_give_here(remote: Remote) -> None:
    created, inserted = run(remote, SETUP)
    assert isinstance(created, Done) and isinstance(inserted, Done)
    assert (created.message, created.command_id) == ("Stream created", "stream/ORDERS/create")
    (described,) = run(remote, "DESCRIBE orders;")
    assert isinstance(described, Rows)
    assert [row[:2] for row in described.rows] == [("ID", "VARCHAR"), ("AMOUNT", "DECIMAL(6, 2)"), ("AT", "TIMESTAMP")]
    assert described.details == (("Name", "ORDERS"),)


def test_a_script_waits_for_the_queries_of_the_server(
    remote: Remote, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(remote, SETUP + "CREATE STREAM copy AS SELECT * FROM orders;")
    states = ["RUNNING", "RUNNING", "STOPPED", "RUNNING", "STOPPED", "STOPPED", "STOPPED"]
    (query,) = database.queries()
    monkeypatch.setattr(database, "queries", lambda: [replace(query, state=states.pop(0))])
    monkeypatch.setattr(remotes, "LOOK_S", 0.0)
    remote.settle()
    assert states == ["STOPPED"], "it waits until nobody is behind in two looks"


def test_rows_that_keep_coming_are_read_to_their_end(remote: Remote) -> None:
    run(remote, SETUP)
    (printed,) = run(remote, "PRINT orders FROM BEGINNING LIMIT 1;")
    assert isinstance(printed, Push)
    (row,) = list(printed)
    assert 'value: {"AMOUNT":1.50' in row[0]
    assert printed.next(0) is None


def test_a_push_query_can_be_left_before_its_end(remote: Remote) -> None:
    run(remote, SETUP)
    (printed,) = run(remote, "PRINT orders FROM BEGINNING;")
    assert isinstance(printed, Push)
    with printed:
        rows = printed.next(10)
        assert rows is not None and len(rows) == 1
        assert printed.next(0) == []


def test_an_error_has_its_location_in_the_text_that_was_typed(remote: Remote) -> None:
    with pytest.raises(StatementRefused) as caught:
        run(remote, "SHOW STREAMS;\n  DESCRIBE nothing;")
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (2, 3)
    assert "there is no stream or table NOTHING" in caught.value.message


def test_variables_and_properties_stay_here(remote: Remote) -> None:
    run(remote, "DEFINE name = 'orders'; SET 'auto.offset.reset' = 'latest';")
    assert remote.variables == {"name": "orders"}
    (variables, properties) = run(remote, "SHOW VARIABLES; SHOW PROPERTIES;")
    assert isinstance(variables, Rows) and isinstance(properties, Rows)
    assert variables.rows == (("name", "orders"),)
    assert properties.rows[0] == ("auto.offset.reset", "SESSION", "SET", "latest")
    run(remote, "UNDEFINE NAME; UNSET 'auto.offset.reset';")
    assert (remote.variables, remote.properties) == ({}, {})


def test_names_are_those_of_the_server(remote: Remote) -> None:
    run(remote, SETUP + "CREATE TYPE money AS DECIMAL(6, 2);")
    remote.start()
    names = remote.names()
    assert names.sources["ORDERS"].kind == "STREAM"
    assert names.sources["ORDERS"].columns["AMOUNT"] == decimal(6, 2)
    assert (names.topics, names.types) == (("orders",), ("MONEY",))


def test_a_token_is_sent_and_without_it_nothing_is_answered(database: Database) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": "read=0123456789abcdef"})
    with Server(database, port=0, tokens=tokens) as server:
        (listed,) = run(Remote(server.url, "0123456789abcdef"), "SHOW STREAMS;")
        assert isinstance(listed, Rows)
        with pytest.raises(ServerRefused, match="requires a token"):
            run(Remote(server.url, None), "SHOW STREAMS;")
        with pytest.raises(ServerRefused, match="requires a token"):
            run(Remote(server.url, None), "PRINT orders;")


@pytest.mark.parametrize(("ending", "is_whole"), [(b"0\r\n\r\n", True), (b"", False), (b"40\r\n[1", False)])
def test_a_connection_that_breaks_is_not_taken_for_the_end(ending: bytes, is_whole: bool) -> None:
    header = b'{"queryId": "q", "columnNames": ["N"], "columnTypes": ["INTEGER"]}\n'
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (header, b"[1]\n[", b"2]\n"))
    with answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + ending) as url:
        (push,) = run(Remote(url, None), "SELECT n FROM t EMIT CHANGES;")
        assert isinstance(push, Push)
        rows: list[object] = []
        with contextlib.nullcontext() if is_whole else pytest.raises(NoServer):
            rows.extend(push)
        assert rows == [(1,), (2,)] or not is_whole


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Somebody who answers one request, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                request = b""
                while not request.endswith(b"}"):
                    request += connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "127.0.0.1:1"])
def test_a_missing_server_is_reported(url: str) -> None:
    with pytest.raises(NoServer, match=r"http://127\.0\.0\.1:1"):
        run(Remote(url, None), "SHOW STREAMS;")


@pytest.mark.parametrize("url", ["ftp://x", "http://", ""])
def test_an_invalid_address_is_reported(url: str) -> None:
    with pytest.raises(SetupError, match="is not the address"):
        Remote(url, None)


def test_types_round_trip() -> None:
    from potok.cli.prompt.targets.remote import row_of, type_named
    from potok.statements.results import ResultColumn

    assert type_named("STRING") == VARCHAR
    columns = [ResultColumn("A", type_named("DOUBLE")), ResultColumn("B", type_named("DECIMAL(4, 2)"))]
    row = row_of([Decimal("1.5"), Decimal("1.50")], columns)
    assert [type(value) for value in row] == [float, Decimal]
    assert type_named("SOMETHING ELSE") == VARCHAR
