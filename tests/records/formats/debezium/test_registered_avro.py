"""Debezium's events in Avro: each names its schema, which a registry has."""

from __future__ import annotations

import io
import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from potok import StreamsBuilder
from potok.errors import SchemaError
from potok.records.formats.debezium.registered_avro import as_json
from potok.records.formats.registry import format_named
from potok.records.schema_registry.errors import RegistryUnreachable
from potok.testing import TestDriver

ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "name", "type": ["null", "string"]},
        {
            "name": "balance",
            "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}],
        },
        {"name": "made", "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}},
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.users",
    "fields": [
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
    ],
}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
SCHEMAS: dict[int, dict[str, Any]] = {7: ENVELOPE, 8: KEY}


class Registry:
    """A registry of the protocol that Confluent, Karapace and Apicurio speak."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[tuple[str, str | None]] = []


@contextmanager
def serving(answer: bytes | None = None) -> Iterator[Registry]:
    """A server of the schemas, or of one answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append((self.path, self.headers["Authorization"]))
            if self.path.startswith("/moved"):
                self.send_response(302)
                self.send_header("Location", self.path.removeprefix("/moved"))
                self.end_headers()
                return
            found = SCHEMAS.get(int(self.path.removeprefix("/schemas/ids/")))
            gone = {"error_code": 40403, "message": "Schema not found"}
            body = json.dumps({"schema": json.dumps(found)} if found else gone).encode() if answer is None else answer
            self.send_response(200 if found or answer is not None else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry = Registry(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving() as found:
        yield found


def avro(number: int, value: dict[str, Any]) -> bytes:
    stream = io.BytesIO(b"\0" + number.to_bytes(4, "big"))
    stream.seek(5)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(SCHEMAS[number]))), value)
    return stream.getvalue()


def event(op: str, row: dict[str, Any] | None) -> bytes:
    return avro(7, {"before": None, "after": row, "op": op})


ANN = {"id": 1, "name": "Ann", "balance": Decimal("12.00"), "made": 1_700_000_000_000_000}


def test_events_in_avro_are_the_rows_of_a_table(registry: Registry) -> None:
    builder = StreamsBuilder("q")
    builder.table(
        "users",
        key=int,
        key_format=f"debezium_key;registry={registry.url}",
        value="name string, balance decimal(10,2), made timestamp",
        value_format=f"debezium;registry={registry.url}",
        name="users",
    )
    with TestDriver(builder) as driver:
        for id_, op in ((1, "c"), (2, "c"), (2, "d")):
            row = {**ANN, "id": id_} if op == "c" else None
            driver.send("users", event(op, row), avro(8, {"id": id_}), timestamp=1)
        driver.run()
        found = driver.table("users").all()
    assert list(found) == [1]
    assert (str(found[1]["balance"]), found[1]["name"], found[1]["made"].year) == ("12.00", "Ann", 2023)
    assert {path for path, _ in registry.asked} == {"/schemas/ids/7", "/schemas/ids/8"}


def test_json_and_avro_may_be_in_one_topic(registry: Registry) -> None:
    values = [event("c", ANN), b'{"before":null,"after":{"id":2},"op":"c"}', None]
    found = format_named(f"debezium;registry={registry.url}").decode(_binary(values), None)
    assert [row and row["id"] for row in found.column] == [1, 2, None]
    assert found.errors == {}


def test_values_that_cannot_be_read_are_errors_of_their_rows(registry: Registry) -> None:
    values = [event("c", ANN), event("c", ANN)[:-1], b"\0\0", b"\0\0\0\0\x63rest", event("c", ANN) + b"x"]
    _, errors = as_json(_binary(values), registry.url)
    assert list(errors) == [1, 2, 3, 4]
    assert "not valid Avro of schema 7" in errors[1] and "cut off" in errors[2]
    assert "no schema 99" in errors[3] and "1 bytes are left over" in errors[4]


def test_the_password_of_the_registry_comes_from_the_environment(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_URL", registry.url.replace("http://", "http://me:se%2Fcret@"))
    _, errors = as_json(_binary([event("c", ANN)]), "env:REGISTRY_URL")
    assert errors == {}
    assert registry.asked == [("/schemas/ids/7", f"Basic {b64encode(b'me:se/cret').decode()}")]


def test_a_registry_that_is_away_is_waited_for() -> None:
    with serving() as registry:
        gone = registry.url
    with pytest.raises(RegistryUnreachable) as found:
        as_json(_binary([event("c", ANN)]), gone)
    assert found.value.passing


def test_a_schema_that_is_gone_is_asked_for_once_per_block(registry: Registry) -> None:
    _, errors = as_json(_binary([b"\0\0\0\0\x63rest" for _ in range(5)]), registry.url)
    assert list(errors) == [0, 1, 2, 3, 4] and len(set(errors.values())) == 1
    assert registry.asked == [("/schemas/ids/99", None)]


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hid/den@host:8081",
        "http://me:hidden@host:port",
        "http://me:hidden@host:99999",
        "http://me:hidden@",
        "file:///etc/hidden",
        "host:8081/hidden",
        "hidden",
    ],
)
def test_a_registry_that_is_no_url_of_http_is_an_error_of_the_option(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_URL", url)
    for registry in (url, "env:REGISTRY_URL"):
        with pytest.raises(SchemaError, match="the option registry is not a URL of HTTP") as caught:
            format_named(f"debezium;registry={registry}").decode(_binary([event("c", ANN)]), None)
        assert "hid" not in str(caught.value)


def test_an_address_of_ipv6_keeps_its_brackets() -> None:
    with pytest.raises(RegistryUnreachable, match=r"http://\[::1\]:9 cannot be reached: .*refused"):
        as_json(_binary([event("c", ANN)]), "http://[::1]:9")


def test_redirects_and_large_answers_of_a_registry_are_not_taken(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCHEMAS, 21, {"type": "enum", "name": "E", "symbols": ["A"], "doc": "x" * (5 << 20)})
    with pytest.raises(RegistryUnreachable, match="its answer is larger than 4 MB"):
        _decoded(b"\0\0\0\0\x15\0", registry.url)
    with pytest.raises(RegistryUnreachable, match="it answers 302"):
        _decoded(b"\0\0\0\0\x07\0", f"{registry.url}/moved")
    assert [path for path, _ in registry.asked] == ["/schemas/ids/21", "/moved/schemas/ids/7"]


def _binary(values: list[bytes | None]) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.binary())


def _decoded(data: bytes, registry: str) -> dict[int, str]:
    return as_json(pa.array([data], pa.binary()), registry)[1]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": "r"}]},
            '"r" of the registry contains itself',
        ),
        (
            {
                "type": "record",
                "name": "r",
                "fields": [{"name": "a", "type": ["null", {"type": "array", "items": "r"}]}],
            },
            '"r" of the registry contains itself',
        ),
        ({"type": "nosuch"}, 'schema 20: the registry has no definition of "nosuch"'),
        ({"type": "array", "items": ["null", "long"]}, "not valid Avro of schema 20: the value is cut off"),
    ],
)
def test_a_schema_that_could_crash_the_reader_is_an_error_of_its_records(
    schema: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCHEMAS, 20, schema)
    with serving() as registry:
        (found,) = _decoded(b"\0" + (20).to_bytes(4, "big") + b"\x02", registry.url).values()
    assert reason in found


@pytest.mark.parametrize("answer", [b"[]", b"{}", b"null", b"<html>Sign in</html>", b'{"schema_type": "AVRO"}'])
def test_what_does_not_answer_as_a_registry_is_not_taken_for_bad_records(answer: bytes) -> None:
    with serving(answer) as registry, pytest.raises(RegistryUnreachable, match="not one of a schema registry"):
        _decoded(b"\0\0\0\0\1", registry.url)
