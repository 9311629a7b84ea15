"""State URLs, and passwords that are never shown."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from potok.backends.state_url import PASSWORD, StoreUnreachable, UnknownStore, Where
from potok.errors import StateError
from potok.metadata.open import open_metadata
from potok.state.open import open_store


@pytest.mark.parametrize("text", ["data", "./data", "file:data", "file:./data"])
def test_a_directory_may_be_written_in_several_ways(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Where.of(text).directory == tmp_path / "data"
    assert str(Where.of(text)) == f"file:{tmp_path}/data"


def test_a_file_url_with_three_slashes_is_absolute(tmp_path: Path) -> None:
    assert Where.of(f"file://{tmp_path}").directory == tmp_path
    assert Where.of(tmp_path) == Where.of(str(tmp_path)) == Where.of(f"file:{tmp_path}")


@pytest.mark.parametrize("url", ["mysql://host/db", "kafka://host:9092", "redis:", "swift://bucket:secret@x"])
def test_a_url_with_an_unknown_scheme_is_rejected_with_the_known_ones(url: str) -> None:
    with pytest.raises(UnknownStore) as caught:
        Where.of(url)
    assert "postgresql://" in caught.value.hint
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "rendered"),
    [
        ("s3://bucket/some/prefix", "s3://bucket/some/prefix"),
        ("s3://bucket/", "s3://bucket"),
        ("gs://bucket//prefix/", "gs://bucket/prefix"),
        ("az://container/prefix?account_name=me", "az://container/prefix?account_name=me"),
        ("object+file:///shared/a b/", "object+file:///shared/a b"),
    ],
)
def test_a_location_of_objects_has_one_spelling(url: str, rendered: str) -> None:
    assert str(Where.of(url)) == rendered
    assert Where.of(rendered) == Where.of(url)


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("hdfs://host/prefix", "HDFS has no conditional writes"),
        ("s3://", "name a bucket"),
        ("s3://anna:secret@bucket/prefix", "credentials come from the environment"),
        ("s3://bucket?secret_access_key=secret", "the option"),
        ("object+file://host/directory", "by its absolute path"),
        ("object+file:data", "not a valid URL|absolute|escape|as %2F"),
    ],
)
def test_a_location_that_cannot_hold_objects_is_refused_with_a_hint(url: str, hint: str) -> None:
    with pytest.raises(StateError) as caught:
        open_store(url, "q", 0)
    assert re.search(hint, caught.value.hint)
    assert "secret@" not in str(caught.value) and "=secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "rendered"),
    [
        ("redis://:secret@host:6379/0", "redis://host:6379/0"),
        ("redis://anna:secret@host:6379/0", "redis://anna@host:6379/0"),
        ("rediss://host/0?password=secret&db=1", "rediss://host/0?db=1"),
        ("postgresql://anna:secret@host:5432/db?sslmode=require", "postgresql://anna@host:5432/db?sslmode=require"),
        ("postgresql://host/db?user=anna&password=secret", "postgresql://host/db?user=anna"),
        ("cassandra://anna:secret@one,two:9042/ks?local_dc=a", "cassandra://anna@one,two:9042/ks?local_dc=a"),
    ],
)
def test_a_password_is_never_shown(url: str, rendered: str) -> None:
    where = Where.of(url)
    assert str(where) == repr(where) == rendered
    assert pickle.loads(pickle.dumps(where)).url == url


@pytest.mark.parametrize(
    ("url", "connects_by"),
    [
        ("redis://elsewhere:6379/0", "redis://:s%3Ap@elsewhere:6379/0"),
        ("postgresql://anna@elsewhere/db", "postgresql://anna:s%3Ap@elsewhere/db"),
        ("postgresql://anna:own@elsewhere/db", "postgresql://anna:own@elsewhere/db"),
    ],
)
def test_the_password_may_be_set_in_the_environment(
    url: str, connects_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, "s:p")
    assert Where.of(url).with_password().url == connects_by


def test_a_process_remembers_the_password_of_a_url() -> None:
    reported = Where.of("redis://anna:secret@far.example:6379/3")
    assert Where.of(str(reported)).with_password() == reported


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [
        ("redis", "redis://host/0", "potok[redis]"),
        ("psycopg", "postgresql://host/db", "potok[postgres]"),
        ("cassandra", "cassandra://host/ks", "potok[cassandra]"),
        ("obstore", "s3://bucket", "potok[object-store]"),
    ],
)
def test_a_missing_driver_is_reported_with_its_extra(package: str, url: str, extra: str) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None; import potok.state.open as o; o.open_store({url!r}, 'q', 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f'pip install "{extra}"' in done.stderr


@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret@127.0.0.1:1/0",
        "postgresql://potok:secret@127.0.0.1:1/db",
        "cassandra://potok:secret@127.0.0.1:1/ks",
    ],
)
def test_an_unreachable_server_is_reported_without_its_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.backends.redis_connection.TRIES", 1)
    monkeypatch.setattr("potok.backends.postgres.connections.BRIEFLY_MS", 1)
    monkeypatch.setattr("potok.backends.cassandra.connection.BRIEFLY_MS", 1)
    for open_it in (lambda: open_store(url, "q", 0), lambda: open_metadata(url)):
        with pytest.raises(StoreUnreachable, match=r"127\.0\.0\.1") as caught:
            open_it()
        assert "secret" not in str(caught.value)
