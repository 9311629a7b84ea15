"""The catalog of statements and the ledgers of their queries in a bucket, next to Kafka."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from potok.backends.objects.open import object_client
from potok.backends.state_url import Where
from potok.log.open import open_broker
from potok.settings import Settings
from potok.sql.syntax.parse import parse_script
from potok.statements.database import Database

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus


def test_a_catalog_next_to_kafka_is_found_by_another_process_and_its_objects_stay_few(
    kafka: ServerStatus, s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POTOK_CACHE_DIR", str(tmp_path / "cache"))
    topic = f"t-{uuid.uuid4().hex}"
    settings = Settings(broker=kafka.url, state=s3_url)

    def opened() -> Database:
        return Database(open_broker(kafka.url, settings, shared=False), settings, runs=False)

    script = f"CREATE STREAM orders (id VARCHAR KEY, user_id VARCHAR) WITH (KAFKA_TOPIC = '{topic}', PARTITIONS = 1);"
    with opened() as database, opened() as other:
        for parsed in parse_script(script):
            database.apply(parsed, {})
        for number in range(5):
            for parsed in parse_script(f"CREATE TYPE t{number} AS DECIMAL(10, 2); DROP TYPE t{number};"):
                database.apply(parsed, {})
        other.refresh()
        assert list(other.catalog.sources) == ["ORDERS"]
        assert other.catalog == database.catalog
    assert len(object_client(Where.of(s3_url)).list("metadata/")) < 8
