"""The engine on several executors, each a process of its own, with the log on Kafka and the state in a bucket.

`make faults` has rows with the state on Redis.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults.rows.cluster import cluster
from tests.faults.scene import Scene
from tests.faults.servers import Servers

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(900)]


class Borrowed(Servers):
    """Those that the other tests use too."""

    def __init__(self, kafka: ServerStatus, state: str) -> None:
        super().__init__()
        self._status, self._redis = kafka, state

    def kafka(self) -> Borrowed:  # type: ignore[override]
        return self

    def url(self, home: str) -> str:
        return f"{self._status.url}?home={home}"


def test_a_query_on_two_executors_makes_the_same_tables_as_on_one_machine(
    kafka: ServerStatus, s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POTOK_CACHE_DIR", str(tmp_path))
    servers = Borrowed(kafka, s3_url)
    scene = Scene(7, servers)
    try:
        cluster(scene)
    finally:
        scene.close()
        servers.close()
