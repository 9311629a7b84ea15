from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from certificates import Authority
from potok.server.http import either_protocol
from potok.server.server import Server
from potok.server.tls import BadCertificate, CertificateReloader, Tls, TlsWithoutKey
from server.conftest import sell
from statements.playing import Play


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def tls(authority: Authority, tmp_path: Path) -> Tls:
    found = Tls(tmp_path / "server.crt", tmp_path / "server.key")
    authority.write(found.cert, found.key, "first")
    return found


@pytest.fixture
def secure(shop: Play, tls: Tls) -> Iterator[Server]:
    with Server(shop.database, port=0, tls=tls) as found:
        yield found


@pytest.mark.parametrize(("http2", "version"), [(False, "HTTP/1.1"), (True, "HTTP/2")])
def test_the_client_chooses_the_version_of_http(
    secure: Server, shop: Play, authority: Authority, http2: bool, version: str
) -> None:
    sell(shop, ("o1", "anna", 5.0))
    assert secure.url.startswith("https://")
    with httpx.Client(base_url=secure.url, http2=http2, verify=authority.client(), timeout=30) as client:
        answer = client.get("/tables/totals/anna")
        assert (answer.http_version, answer.json()["N"]) == (version, 1)
        large = client.post("/sql", json={"sql": "SHOW FUNCTIONS;"})
        assert len(large.content) > 10_000 and large.json()["results"]


def test_a_web_socket_is_encrypted_too(secure: Server, shop: Play, authority: Authority) -> None:
    url = secure.url.replace("https", "wss") + "/streams/orders?from=beginning"
    sell(shop, ("o1", "anna", 5.0))
    with connect(url, ssl=authority.client(), open_timeout=30) as client:
        assert '"o1"' in str(client.recv(timeout=30))


def test_a_client_without_tls_is_disconnected(secure: Server) -> None:
    with pytest.raises(httpx.TransportError), httpx.Client(timeout=30) as client:
        client.get(f"http://127.0.0.1:{secure.port}/info")


def test_old_versions_of_tls_are_rejected(secure: Server, authority: Authority) -> None:
    context = authority.client()
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", secure.port)) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname="localhost")


def test_a_client_that_never_finishes_the_handshake_is_disconnected(
    shop: Play, tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(either_protocol, "SILENT_S", 0.05)
    with Server(shop.database, port=0, tls=tls) as server:
        for first in (b"", b"\x16\x03\x01"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as idle:
                idle.sendall(first)
                try:
                    assert idle.recv(1) == b""
                except ConnectionResetError:
                    pass


def test_a_renewed_certificate_is_used_by_new_connections_and_keeps_open_ones(
    secure: Server, tls: Tls, authority: Authority
) -> None:
    with httpx.Client(base_url=secure.url, verify=authority.client(), timeout=30) as client:
        assert client.get("/info").status_code == 200
        before = _subject(secure, authority)
        authority.write(tls.cert, tls.key, "second")
        assert secure._reloader is not None and secure._reloader.look()
        assert (before, _subject(secure, authority)) == ("first", "second")
        port = client.get("/info").extensions["network_stream"].get_extra_info("client_addr")
        assert client.get("/info").extensions["network_stream"].get_extra_info("client_addr") == port
        assert not secure._reloader.look()


def test_files_that_do_not_fit_together_leave_the_certificate_as_it_was(
    secure: Server, tls: Tls, authority: Authority, tmp_path: Path
) -> None:
    authority.write(tls.cert, tmp_path / "another.key", "half")
    assert secure._reloader is not None
    assert not secure._reloader.look()
    assert _subject(secure, authority) == "first"
    tls.key.write_bytes((tmp_path / "another.key").read_bytes())
    assert secure._reloader.look()
    assert _subject(secure, authority) == "half"


def test_the_files_are_watched(tls: Tls, authority: Authority) -> None:
    context = tls.context()
    reloader = CertificateReloader(tls, context, look_s=0.01)
    loaded = threading.Event()
    look = reloader.look
    reloader.look = lambda: look() and loaded.set() is None  # type: ignore[method-assign]
    reloader.start()
    authority.write(tls.cert, tls.key, "third")
    assert loaded.wait(30)
    reloader.close()


def test_what_cannot_be_a_pair_is_refused_at_the_start(tls: Tls, authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(TlsWithoutKey):
        Tls.of(tls.cert, None)
    with pytest.raises(BadCertificate, match=r"nowhere\.crt"):
        Tls(tmp_path / "nowhere.crt", tls.key).context()
    authority.write(tmp_path / "other.crt", tmp_path / "other.key")
    with pytest.raises(BadCertificate) as caught:
        Tls(tls.cert, tmp_path / "other.key").context()
    assert "PEM" in caught.value.hint


def _subject(server: Server, authority: Authority) -> str:
    """Return the common name of the certificate that a new connection gets."""
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=30) as plain,
        authority.client("http/1.1").wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        found = secured.getpeercert()
        assert found is not None
        return str(dict(part[0] for part in found["subject"])["commonName"])  # type: ignore[misc]
