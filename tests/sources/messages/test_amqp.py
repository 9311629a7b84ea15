"""The connection to RabbitMQ: what arrives in pieces, over TLS, or from something that is not RabbitMQ."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import struct
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, RabbitMq
from potok.sources.messages import rabbitmq
from potok.sources.messages.amqp import AmqpClosed, AmqpConnection, BadProperties, Delivered
from tests.log.waiting import until
from tests.sources.messages.test_rabbitmq import numbered, publish, waiting_in
from tests.sources.test_appender import values


@contextmanager
def relay(target: str, context: ssl.SSLContext | None = None, *, piece: int = 65_536) -> Iterator[int]:
    """Forward connections to a server, in pieces; with a context over TLS."""
    found = urlsplit(target)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def pump(source: socket.socket, sink: socket.socket) -> None:
            try:
                while data := source.recv(piece):
                    sink.sendall(data)
            except OSError:
                pass
            finally:
                for each in (source, sink):
                    each.close()

        def serve() -> None:
            while True:
                try:
                    plain, _ = server.accept()
                except OSError:
                    return
                try:
                    client = context.wrap_socket(plain, server_side=True) if context else plain
                except ssl.SSLError:
                    continue
                inner = socket.create_connection((found.hostname or "", found.port or 0))
                for ends in ((client, inner), (inner, client)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def certificate(directory: Path) -> Path:
    """A file with a key and a certificate that it signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "potok")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = directory / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def queue() -> str:
    return f"queue-{uuid.uuid4().hex}"


def test_messages_arrive_over_tls_and_a_certificate_that_is_not_trusted_is_refused(
    tmp_path: Path, rabbitmq_url: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    publish(rabbitmq_url, queue, numbered(0, 3_000))
    with relay(rabbitmq_url, context) as port:
        url = f"amqps://guest:guest@127.0.0.1:{port}/"
        with pytest.raises(OSError, match="certificate verify failed"):
            AmqpConnection(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        spec = RabbitMq(name="q", topic="t", url=url, queue=queue, id="message_id")
        with Gateway(EmbeddedBroker(tmp_path / "data"), [spec]) as gateway:
            until(lambda: gateway.counts("q").landed == 3_000)
    assert values(EmbeddedBroker(tmp_path / "data")) == [b"%d" % number for number in range(3_000)]
    assert waiting_in(rabbitmq_url, queue) == 0


def test_messages_that_arrive_in_pieces_and_in_several_frames_are_put_together(
    tmp_path: Path, rabbitmq_url: str, queue: str
) -> None:
    bodies = [b"", b"x", b"y" * 300_000, b"z" * 131_072]
    publish(rabbitmq_url, queue, [(f"m-{number}", body) for number, body in enumerate(bodies)], headers={"a": "b"})
    with relay(rabbitmq_url, piece=7_001) as port:
        spec = RabbitMq(name="q", topic="t", url=f"amqp://127.0.0.1:{port}/", queue=queue, key="message_id")
        with Gateway(EmbeddedBroker(tmp_path), [spec]) as gateway:
            until(lambda: gateway.counts("q").landed == len(bodies))
    [batch] = EmbeddedBroker(tmp_path).read("t", 0, 0, len(bodies))
    assert batch["value"].to_pylist() == bodies
    assert batch["key"].to_pylist() == [b"m-0", b"m-1", b"m-2", b"m-3"]
    assert {each[0]["value"] for each in batch["headers"].to_pylist()} == {b"b"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "closed the connection"),
        (b"AMQP\0\0\x09\x01", "does not speak AMQP 0-9-1"),
        (struct.pack(">BHI", 1, 0, 4) + b"\0\x0a\0\x0a\xcf", "does not end where it says"),
    ],
)
def test_what_is_not_rabbitmq_is_reported(answer: bytes, why: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(8)
                client.sendall(answer + b"\0" * 100 if answer else b"")

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(AmqpClosed, match=why):
            AmqpConnection(f"amqp://127.0.0.1:{server.getsockname()[1]}/")


def test_a_wrong_password_and_an_unknown_vhost_are_reported(rabbitmq_url: str) -> None:
    with pytest.raises(AmqpClosed, match="ACCESS_REFUSED"):
        AmqpConnection(rabbitmq_url.replace("guest:guest", "guest:wrong"))
    with pytest.raises(AmqpClosed, match="vhost missing not found"):
        AmqpConnection(f"{rabbitmq_url}missing")


@pytest.mark.parametrize(
    "entry",
    [b"\x01\xffV", b"\x01aT" + b"\xff" * 8, b"\x01a\x01", b"\x09a", b"\x01aF\0\0\xff\xff"],
    ids=["name", "time", "type", "short name", "short table"],
)
def test_headers_that_cannot_be_decoded_are_an_error_of_the_message(entry: bytes) -> None:
    content = struct.pack(">HI", 0x2000 | 0x0080, len(entry)) + entry + b"\x03m-1"
    with pytest.raises(BadProperties, match="its headers cannot be read"):
        Delivered(1, "", content, b"x").properties()


def test_properties_that_are_cut_off_are_an_error_of_the_message() -> None:
    whole = struct.pack(">HI", 0x2000 | 0x0080, 5) + b"\x01aS\0\0"[:5] + b"\x03m-1"
    for size in range(len(whole)):
        with pytest.raises(BadProperties):
            Delivered(1, "", whole[:size], b"x").properties()


def test_an_answer_that_cannot_be_decoded_is_a_problem_and_the_listener_connects_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []

    def undecodable(url: str) -> AmqpConnection:
        attempts.append(url)
        raise ValueError("Could not unpack data")

    monkeypatch.setattr(rabbitmq, "AmqpConnection", undecodable)
    spec = RabbitMq(name="q", topic="t", url="amqp://127.0.0.1/", queue="q")
    with Gateway(EmbeddedBroker(tmp_path), [spec]) as gateway:
        until(lambda: len(attempts) > 1)
        assert [status.problem for status in gateway.status()] == ["Could not unpack data"]
