"""A program that gets killed: every record goes to every kind of sink under every guarantee."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import potok
from potok import StreamsBuilder

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

GUARANTEES = ("exactly_once", "at_least_once", "at_most_once")


UNCONFIRMED = GUARANTEES[1:]
"""What senders of messages can promise."""


def build(
    directory: Path,
    web: str,
    database: str,
    cache: str,
    search: str,
    queues: str,
    topics: str,
    sockets: str,
    metrics: str,
) -> StreamsBuilder:
    builder = StreamsBuilder("shop")
    orders = builder.stream("orders", value="n bigint")
    for guarantee in GUARANTEES:
        orders.to(guarantee, guarantee=guarantee)
        orders.to_files(directory / "files" / guarantee, guarantee=guarantee)
        orders.to_delta(directory / "delta" / guarantee, guarantee=guarantee)
        orders.to_iceberg(f"shop.{guarantee}", catalog=iceberg_catalog(directory), guarantee=guarantee)
        orders.to_jdbc(jdbc_url(database), f"jdbc_{guarantee}", properties={"user": "tester"}, guarantee=guarantee)
        orders.to_postgres(database, guarantee, guarantee=guarantee)
        orders.to_redis(cache, prefix=f"{guarantee}:", guarantee=guarantee)
        orders.to_opensearch(search, f"guarantees-{guarantee}", guarantee=guarantee)
        orders.to_http(f"{web}/{guarantee}", batch=7, guarantee=guarantee, name=f"http-{guarantee}")
    for guarantee in GUARANTEES[1:]:
        orders.to_callable(appending(directory / guarantee), guarantee=guarantee, name=f"call-{guarantee}")
    for guarantee in UNCONFIRMED:
        orders.to_rabbitmq(queues, queue=f"guarantees-{guarantee}", guarantee=guarantee)
        orders.to_mqtt(topics, f"guarantees/{guarantee}", guarantee=guarantee, name=f"mqtt-{guarantee}")
    orders.to_zeromq(sockets)
    orders.map_values(lambda v: v["n"]).to_statsd(metrics, metric="guarantees")
    orders.to_callable(replacing(directory / "exactly_once"), name="call-exactly_once")
    frames = str(directory / "frames")
    orders.to_dataframe(lambda frame, batch: frame.write.mode("overwrite").parquet(f"{frames}/{batch}"), name="frames")
    orders.to_webhook(f"{web}/webhooks", secrets=SECRET, retry=["0.1 seconds"] * 20)
    return builder


def jdbc_url(database: str) -> str:
    return f"jdbc:postgresql://{database.rpartition('@')[2]}"


def iceberg_catalog(directory: Path) -> dict[str, str]:
    lake = directory / "iceberg"
    lake.mkdir(exist_ok=True)
    return {"name": "lake", "type": "sql", "uri": f"sqlite:///{lake}/catalog.db", "warehouse": f"file://{lake}"}


def appending(path: Path) -> Any:
    """A function that cannot tell whether it has seen a batch before."""

    def append(records: list[Any]) -> None:
        with path.open("a") as file:
            file.write("".join(f"{record.value.n}\n" for record in records))

    return append


def replacing(path: Path) -> Any:
    """A function that goes by the number of the batch."""

    def replace(records: list[Any], batch: int) -> None:
        path.mkdir(exist_ok=True)
        draft = path / "draft"
        draft.write_text(json.dumps([record.value.n for record in records]))
        os.replace(draft, path / f"{batch}.json")

    return replace


if __name__ == "__main__":
    where, *servers = sys.argv[1:]
    program = build(Path(where), *servers)
    potok.run(
        program, broker=f"file:{where}/data", until_end=True, max_batch_records=50, target_batch_ms=60_000, shards=1
    )
