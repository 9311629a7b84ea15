"""The metadata of a Kafka log on a server."""

from __future__ import annotations

import os
import pickle
import uuid
from pathlib import Path
from typing import Any

import pytest

from potok.log.broker import PublishedBatch
from potok.log.errors import MetadataConflict
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.kafka.metadata_location import protected
from potok.log.kafka.options import KafkaOptions
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.settings import Settings


@pytest.fixture(params=["redis", "postgres", "cassandra"])
def home(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def broker(kafka: Any, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KafkaBroker:
    monkeypatch.chdir(tmp_path)
    return KafkaBroker.at(f"{kafka.url}?home={home}")


@pytest.fixture
def query() -> str:
    return f"q-{uuid.uuid4().hex}"


def test_metadata_keys_are_on_the_server_and_not_on_the_disk(broker: KafkaBroker, query: str, home: str) -> None:
    mark = f"query/{query}/ledger"
    broker.set_metadata({mark: b"1"}, {mark: None})
    assert broker.get_metadata(mark) == b"1"
    assert broker.list_metadata(f"query/{query}/") == {mark: b"1"}
    assert broker.home_url == home
    assert not (broker.directory / "log").exists()


def test_a_metadata_key_that_another_writer_changed_stops_everything(broker: KafkaBroker, query: str) -> None:
    mark = f"query/{query}/ledger"
    broker.set_metadata({mark: b"1"})
    with pytest.raises(MetadataConflict, match=query):
        broker.set_metadata({mark: b"2"}, {mark: None})
    with pytest.raises(MetadataConflict):
        broker.publish([], {mark: b"2"}, {mark: b"0"}, PublishedBatch(query, 1, {}))
    assert broker.get_metadata(mark) == b"1"


def test_output_and_ledger_are_published(broker: KafkaBroker, query: str, tmp_path: Path) -> None:
    mark, topic = f"query/{query}/ledger", f"out-{query}"
    broker.create_topic(topic, 1)
    broker.append(topic, [LogRecord(b"k", b"before")])
    (batch,) = broker.read(topic, 0, 0, 1)
    staged = broker.stage(tmp_path, topic, 0, batch.drop_columns(["offset"]))
    broker.publish([staged], {mark: b"1"}, {mark: None}, PublishedBatch(query, 1, {}))
    assert broker.get_metadata(mark) == b"1"
    (found,) = broker.read(topic, 0, 0, broker.end_offsets(topic)[0])
    assert found.column("value").to_pylist() == [b"before", b"before"]


def test_a_broker_finds_its_home_again_in_another_process(broker: KafkaBroker, query: str) -> None:
    broker.set_metadata({f"query/{query}/ledger": b"1"})
    assert pickle.loads(pickle.dumps(broker)).get_metadata(f"query/{query}/ledger") == b"1"


def test_who_needs_which_records_is_noted_there(broker: KafkaBroker, query: str) -> None:
    broker.set_protected(f"{query}-a", {(query, 0): 5, (query, 1): 7})
    broker.set_protected(f"{query}-b", {(query, 0): 3})
    needed = {place: offset for place, offset in protected(broker.home).items() if place[0] == query}
    assert needed == {(query, 0): 3, (query, 1): 7}
    broker.set_protected(f"{query}-a", {})
    assert (query, 1) not in protected(broker.home)


def test_the_setting_state_is_the_home_of_a_log_that_names_none(kafka: Any, home: str) -> None:
    opened = open_broker(kafka.url, Settings(broker=kafka.url, state=home))
    assert isinstance(opened, KafkaBroker)
    assert opened.home_url == home


def test_a_home_is_shown_without_its_password() -> None:
    options = KafkaOptions.of_url("kafka://host?home=redis://:secret@far:6379/0")
    assert options.home_url == "redis://:secret@far:6379/0"
    assert "secret" not in options.url + repr(options)
    assert options.home_path == Path(os.getcwd()) / "data"


@pytest.mark.parametrize("home", ["data", "file:./data", "/elsewhere"])
def test_a_directory_is_not_a_server(home: str) -> None:
    assert KafkaOptions.of_url(f"kafka://host?home={home}").home_url is None
