"""The client of a registry: behind a proxy that demands TLS on both sides and a login, in front of a real registry."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from potok.records.schema_registry.client import AVRO, Reference, RegistryClient
from potok.records.schema_registry.connection import connection_of
from potok.records.schema_registry.errors import NoSuchSubject, RegistryRefused, RegistryUnreachable, UnknownSchema

LOGIN = "me:se/cret wörd"


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that clients break off."""


class Proxy:
    def __init__(self, url: str, options: dict[str, str]) -> None:
        self.url, self.options = url, {"url": url, "basic.auth.user.info": LOGIN, **options}
        self.asked: list[str] = []
        self.paths: dict[str, str] = {}
        """Paths that the registry does not know, and those in their place."""

    def client(self, **changed: str | None) -> RegistryClient:
        """A client with options that are changed, or left out."""
        given = {**self.options, **{name.replace("_", "."): value for name, value in changed.items()}}
        connection = connection_of({name: value for name, value in given.items() if value is not None})
        assert connection is not None
        return RegistryClient(connection)


@pytest.fixture
def proxy(registry_url: str, tmp_path: Path) -> Iterator[Proxy]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found.asked.append(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer, status = b'{"error_code": 401, "message": "who are you?"}', 401
            if self.headers["Authorization"] == f"Basic {b64encode(LOGIN.encode()).decode()}":
                kind = {"Content-Type": self.headers["Content-Type"]} if body else {}
                path = found.paths.get(self.path, self.path)
                forwarded = pool.request(self.command, registry_url + path, body=body or None, headers=kind)
                answer, status = forwarded.data, forwarded.status
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET

        def log_message(self, *words: object) -> None:
            pass

    certificate, key = _certificate(tmp_path)
    server = Quiet(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    options = {"ssl.ca.location": certificate, "ssl.certificate.location": certificate, "ssl.key.location": key}
    found = Proxy(f"https://127.0.0.1:{server.server_port}", options)
    pool = urllib3.PoolManager()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        pool.clear()


def _certificate(directory: Path) -> tuple[str, str]:
    """A certificate that signs itself, for server and client, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "registry")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number()).not_valid_before(now)
    made = made.not_valid_after(now + dt.timedelta(days=2)).add_extension(address, False)
    made = made.add_extension(x509.BasicConstraints(True, None), True)
    paths = directory / "certificate.pem", directory / "key.pem"
    paths[0].write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return str(paths[0]), str(paths[1])


def record(name: str, *fields: Any) -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


def test_schemas_are_registered_and_read_over_tls_with_a_login_and_each_is_asked_for_once(proxy: Proxy) -> None:
    client, text = proxy.client(), record("Tls", {"name": "a", "type": "int"})
    number = client.register("tls-value", AVRO, text).id
    assert client.register("tls-value", AVRO, text).id == number
    assert json.loads(client.schema(number).text) == json.loads(text)
    assert client.schema(number) is client.schema(number)
    assert proxy.asked == ["/subjects/tls-value/versions", f"/schemas/ids/{number}"]
    assert client.latest("tls-value").id == number
    using = record("Using", {"name": "t", "type": "Tls"})
    refers = client.register("tls-using/value", AVRO, using, (Reference("Tls", "tls-value", 1),))
    fresh = proxy.client()
    assert [name for name, _ in fresh.referenced(fresh.schema(refers.id))] == ["Tls"]


def test_a_schema_is_found_by_its_guid(proxy: Proxy) -> None:
    client, guid = proxy.client(), "0190e4f4-5b30-7a2c-9c3e-2f6d0c1f7a12"
    given = client.register("guid-value", AVRO, record("ByGuid", {"name": "a", "type": "int"}))
    proxy.paths[f"/schemas/guids/{guid}"] = f"/schemas/ids/{given.id}"
    found = [client.schema_by_guid(guid) for _ in range(2)]
    assert [json.loads(each.text) for each in found] == [json.loads(given.text)] * 2
    assert proxy.asked == ["/subjects/guid-value/versions", f"/schemas/guids/{guid}"]


def test_the_first_address_that_answers_is_used(proxy: Proxy) -> None:
    assert proxy.client(url=f"http://127.0.0.1:9,{proxy.url}").has_subject("nobody-has-this") is False


def test_a_wrong_password_is_refused_and_not_shown(proxy: Proxy) -> None:
    with pytest.raises(RegistryRefused, match=r"answers 401: who are you\?") as caught:
        proxy.client(basic_auth_user_info="me:wrong-password").latest("tls-value")
    assert not caught.value.passing and "basic.auth.user.info" in caught.value.hint
    assert "wrong-password" not in f"{caught.value!r} {caught.value}"


@pytest.mark.parametrize(
    "changed", [{"ssl_ca_location": None}, {"ssl_certificate_location": None, "ssl_key_location": None}]
)
def test_a_certificate_that_is_not_trusted_is_waited_for(proxy: Proxy, changed: dict[str, Any]) -> None:
    with pytest.raises(RegistryUnreachable, match="cannot be reached"):
        proxy.client(**changed).schema(1)
    assert proxy.asked == []


def test_what_the_registry_does_not_have_is_told_apart(proxy: Proxy) -> None:
    client = proxy.client()
    with pytest.raises(UnknownSchema, match="no schema 4000000000"):
        client.schema(4_000_000_000)
    with pytest.raises(NoSuchSubject, match='no subject "nobody/has this"'):
        client.latest("nobody/has this")
    with pytest.raises(RegistryRefused, match=r'the schema of subject "bad" cannot be registered: .* 422: '):
        client.register("bad", AVRO, '{"type": "recor"}')


def test_a_url_without_a_registry_behind_it_makes_no_dead_letters(proxy: Proxy) -> None:
    with pytest.raises(RegistryUnreachable, match=r"answers 404.* the path of its URL may be wrong"):
        proxy.client(url=f"{proxy.url}/no/such/path").schema(1)
    with pytest.raises(UnknownSchema, match="no schema 0190e4f4"):
        proxy.client().schema_by_guid("0190e4f4-5b30-7a2c-9c3e-2f6d0c1f7a11")
