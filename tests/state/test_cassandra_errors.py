"""Whatever a Cassandra does, the caller sees an error of Potok; TLS and passwords, and a server that is restarted."""

from __future__ import annotations

import datetime
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cassandra_server import ADMINISTRATOR, KEYSPACE, CassandraServer, cassandra_server
from potok.backends.cassandra import connection as connection_module
from potok.backends.cassandra.errors import DatacenterMissing, KeyspaceMissing
from potok.backends.cassandra.options import WrongCassandraUrl
from potok.backends.state_url import PASSWORD, StoreUnreachable, Where
from potok.errors import StateError
from potok.metadata.open import open_metadata
from potok.state.cell import encode_cell
from potok.state.fence import Attempt
from potok.state.open import open_store
from potok.state.store import Store
from state.shard import Shard
from state.test_server_errors import USES

pytestmark = pytest.mark.timeout(600)

SECURED = """
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
client_encryption_options:
  enabled: true
  optional: true
  ssl_context_factory:
    class_name: org.apache.cassandra.security.PEMBasedSslContextFactory
  keystore: {file}
"""

SECRET = "not-a-real-one/?#@"


@pytest.fixture(scope="module")
def certificate() -> str:
    """A self-signed certificate of 127.0.0.1, and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(_loopback())])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=2))
    signed = made.add_extension(address, critical=False).sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return (text + signed.public_bytes(serialization.Encoding.PEM)).decode()


def _loopback() -> object:
    import ipaddress

    return ipaddress.ip_address("127.0.0.1")


@pytest.fixture(scope="module")
def secured(certificate: str) -> Iterator[CassandraServer]:
    """A Cassandra with passwords and TLS, which can be stopped and started again."""
    # The server runs as another user, who cannot read the directories of pytest.
    with tempfile.TemporaryDirectory(prefix="potok-certificate-") as directory:
        Path(directory).chmod(0o755)
        file = Path(directory) / "server.pem"
        file.write_text(certificate)
        yield from _secured(file)


def _secured(file: Path) -> Iterator[CassandraServer]:
    with cassandra_server(SECURED.format(file=file)) as server:
        server.execute(
            f"CREATE ROLE tester WITH PASSWORD = '{SECRET}' AND LOGIN = true",
            f"GRANT ALL ON KEYSPACE {KEYSPACE} TO tester",
            "CREATE ROLE nobody WITH PASSWORD = 'nothing-to-see' AND LOGIN = true",
        )
        yield server


@pytest.fixture
def where(secured: CassandraServer, monkeypatch: pytest.MonkeyPatch) -> Where:
    monkeypatch.setenv(PASSWORD, SECRET)
    return Where.of(secured.url.replace("://", "://tester@"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "BRIEFLY_MS", 1)


def put(store: Store, batch: int, keys: int = 500) -> None:
    attempt = Attempt(1, batch)
    store.put_many(
        attempt, [("t", [(b"%04d" % key, encode_cell(attempt, b"%d" % batch, None)) for key in range(keys)])]
    )


def test_tls_and_a_password_from_the_environment(where: Where, certificate: str, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(certificate[certificate.index("-----BEGIN CERTIFICATE") :])
    location = Where.of(f"{where}?tls_ca={tmp_path}/ca.pem")
    shard = Shard(location)
    put(shard.store(), 1)
    assert shard.store().entries("t") == 500
    assert SECRET not in repr(location)
    assert all(host.is_up for host in connection_module.connect(location).session.cluster.metadata.all_hosts())
    assert connection_module.connect(location).session.cluster.ssl_context is not None


@pytest.mark.usefixtures("quick")
def test_a_certificate_of_somebody_else_is_rejected(where: Where) -> None:
    with pytest.raises(StoreUnreachable, match="certificate verify failed"):
        open_store(f"{where}?tls=true", "q", 0)


@pytest.mark.usefixtures("quick")
def test_a_wrong_password_is_reported_and_not_shown(secured: CassandraServer) -> None:
    url = secured.url.replace("://", "://ghost:Wrong-One-77@")
    for use in (lambda: open_store(url, "q", 0), lambda: open_metadata(url)):
        with pytest.raises(StoreUnreachable, match="rejects the user or the password") as caught:
            use()
        assert "Wrong-One-77" not in str(caught.value)
        assert PASSWORD in caught.value.hint


@pytest.mark.usefixtures("quick")
def test_a_user_without_rights_is_told_which_to_grant(secured: CassandraServer, where: Where) -> None:
    put(Shard(where).store(), 1)
    with pytest.raises(StateError, match="denies access") as caught:
        open_store(secured.url.replace("://", "://nobody:nothing-to-see@"), "q", 0).get_many("t", [b"a"])
    assert "GRANT" in caught.value.hint


@pytest.mark.usefixtures("quick")
def test_a_missing_keyspace_and_a_wrong_datacenter_are_told_from_a_server_that_is_away(cassandra_url: str) -> None:
    with pytest.raises(KeyspaceMissing, match='"nothing"') as caught:
        open_store(cassandra_url.replace(f"/{KEYSPACE}", "/nothing"), "q", 0)
    assert "CREATE KEYSPACE nothing" in caught.value.hint
    with pytest.raises(DatacenterMissing, match='"dc9"') as wrong:
        open_store(f"{cassandra_url}?local_dc=dc9", "q", 0)
    assert "datacenter1" in wrong.value.hint
    open_store(f"{cassandra_url}?local_dc=datacenter1&consistency=local_quorum", "q", 0)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("cassandra://host", "names no keyspace"),
        ("cassandra://host/", "names no keyspace"),
        ("cassandra://host/a-b", "not the name of a keyspace"),
        ("cassandra://host:port/ks", "not a host and a port|not a valid URL"),
        ("cassandra://a,:9/ks", "not a host and a port"),
        ("cassandra://host/ks?timeout=3", 'unknown option "timeout"'),
        ("cassandra://host/ks?consistency=one", "consistency one is not supported"),
        ("cassandra://host/ks?tls=perhaps", "neither true nor false"),
        ("cassandra://host/ks?tls_ca=/does/not/exist", "cannot be loaded"),
    ],
)
def test_a_url_that_cannot_be_right_is_rejected_before_anything_is_asked(url: str, problem: str) -> None:
    with pytest.raises(StateError, match=problem) as caught:
        open_store(url, "q", 0)
    assert caught.value.hint
    assert not caught.value.passing
    assert isinstance(caught.value, WrongCassandraUrl) or "valid URL" in str(caught.value)


@pytest.mark.usefixtures("quick")
def test_dropped_tables_are_an_error_of_potok(secured: CassandraServer) -> None:
    keyspace = "dropped"
    secured.create_keyspace(keyspace)
    shard = Shard(Where.of(secured.url_of(keyspace).replace("://", f"://{ADMINISTRATOR}:{ADMINISTRATOR}@")))
    store = shard.store()
    put(store, 1)
    secured.execute(f"DROP TABLE {keyspace}.potok_cells")
    with pytest.raises(StateError, match="rejected the request") as caught:
        store.get_many("t", [b"0001"])
    assert not caught.value.passing


def test_a_killed_cassandra_is_unreachable_and_nothing_is_lost_when_it_is_back(
    secured: CassandraServer, where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches are repeated until they succeed, as a query does."""
    shard, halfway, failures = Shard(where), threading.Event(), list[StateError]()

    def work() -> None:
        for batch in range(1, 31):
            for _ in range(500):
                try:
                    put(shard.store(), batch, keys=1_000)
                    break
                except StateError as error:
                    failures.append(error)
                    threading.Event().wait(0.1)
            if batch == 12:
                halfway.set()

    worker = threading.Thread(target=work)
    worker.start()
    assert halfway.wait(120)
    secured.stop(signal.SIGKILL)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(connection_module, "BRIEFLY_MS", 1)
            errors = _errors(shard)
    finally:
        secured.start()
        worker.join(300)
    assert errors.keys() >= USES.keys() - {"open"}
    assert all("cannot be reached" in str(error) and str(where) in str(error) for error in errors.values())
    assert failures
    assert {error.passing for error in [*errors.values(), *failures]} == {True}
    store = shard.store()
    assert store.attempt() == Attempt(1, 30)
    assert {(cell.batch, cell.new) for _, cell in store.scan("t")} == {(30, b"30")}
    assert store.entries("t") == 1_000


def _errors(shard: Shard) -> dict[str, StateError]:
    """Use a store in every way. An exception that is not an error of Potok fails the test."""
    found: dict[str, StateError] = {}
    for name, use in USES.items():
        try:
            use(shard, shard.store())
        except StateError as error:
            found[name] = error
    return found
