"""`potok doctor` asks the servers that the settings name, and looks at clocks and permissions."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psycopg
import pytest

from potok.backends.objects.directory import DirectoryClient
from potok.cli.checks.server_checks import check_clock, check_own_clock, check_permissions, check_servers, check_state
from potok.log.kafka.development.server import ServerStatus
from potok.settings import Settings


def test_a_redis_that_can_be_written_passes_and_its_clock_is_compared(redis_url: str) -> None:
    state, clock = check_state(redis_url)
    assert (state.status, "can be written (Redis " in state.detail) == ("ok", True)
    assert (clock.what, clock.status) == ("clock", "ok")


@pytest.mark.parametrize("url", ["directory_url", "s3_url"])
def test_object_storage_that_checks_conditions_passes(url: str, request: pytest.FixtureRequest) -> None:
    [found] = check_state(request.getfixturevalue(url))
    assert (found.status, "checks conditions" in found.detail) == ("ok", True)


def test_object_storage_that_ignores_conditions_fails(directory_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DirectoryClient, "create", lambda *_: "version")
    [found] = check_state(directory_url)
    assert (found.status, "If-None-Match" in found.hint) == ("fail", True)


def test_a_postgres_whose_user_may_not_create_tables_fails(postgres_url: str) -> None:
    state, clock = check_state(postgres_url)
    assert (state.status, clock.status) == ("ok", "ok")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE USER reader")
    try:
        state, _ = check_state(postgres_url.replace("tester@", "reader@"))
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP USER reader")
    assert (state.status, "may not create tables" in state.detail) == ("fail", True)


def test_a_cassandra_that_can_be_written_passes_and_its_clock_is_compared(cassandra_url: str) -> None:
    state, clock = check_state(cassandra_url)
    assert (state.status, "can be written (Cassandra 5." in state.detail) == ("ok", True)
    assert (clock.what, clock.status) == ("clock", "ok")


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:1/0",
        "postgresql://x@127.0.0.1:1/x",
        "cassandra://x@127.0.0.1:1/x",
        "s3://x?endpoint=http://127.0.0.1:1",
        "nonsense://x",
    ],
)
def test_a_state_that_cannot_be_reached_is_one_failure_with_a_hint(url: str) -> None:
    [finding] = check_state(url)
    assert (finding.what, finding.status, bool(finding.hint)) == ("state", "fail", True)


def test_a_kafka_that_does_not_answer_is_a_failure() -> None:
    [finding] = check_servers(Settings(broker="kafka://127.0.0.1:1", connect_timeout_ms=200))
    assert (finding.what, finding.status) == ("Kafka", "fail")


def test_a_kafka_that_answers_passes(kafka: ServerStatus) -> None:
    [finding] = check_servers(Settings(broker=kafka.url))
    assert (finding.what, finding.status) == ("Kafka", "ok")


def test_a_directory_needs_no_server(tmp_path: Path) -> None:
    assert list(check_servers(Settings(broker=f"file:{tmp_path}", state=f"file:{tmp_path}"))) == []


@pytest.mark.parametrize(("skew_s", "status"), [(0.5, "ok"), (-5.0, "warn"), (90.0, "fail"), (-90.0, "fail")])
def test_a_clock_that_differs_is_a_warning_and_then_a_failure(skew_s: float, status: str) -> None:
    found = check_clock(1_000_000.0, "Redis", 1_000_000.0 + skew_s)
    assert (found.status, bool(found.hint)) == (status, status != "ok")


def test_a_clock_that_went_back_since_the_log_was_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "segment").write_bytes(b"")
    assert check_own_clock(tmp_path).status == "ok"
    assert check_own_clock(tmp_path, time.time() - 3_600).status == "fail"
    assert check_own_clock(tmp_path / "not" / "yet").status == "ok"


@pytest.mark.parametrize(("mode", "status"), [(0o700, "ok"), (0o755, "warn"), (0o777, "fail")])
def test_data_that_others_can_read_is_a_warning_and_write_a_failure(tmp_path: Path, mode: int, status: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.chmod(data, mode)
    [finding] = check_permissions(data)
    assert finding.status == status


def test_data_of_another_user_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    [finding] = check_permissions(tmp_path)
    assert (finding.status, "belongs to user" in finding.detail) == ("warn", True)


def test_data_that_does_not_exist_yet_has_no_permissions(tmp_path: Path) -> None:
    assert list(check_permissions(tmp_path / "not" / "yet")) == []
