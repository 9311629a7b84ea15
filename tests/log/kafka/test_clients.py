from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from log.records import read_all
from potok.errors import LogError
from potok.log.kafka import clients
from potok.log.kafka.development.server import free_ports
from potok.log.kafka.errors import KafkaRefused, KafkaUnreachable, OptionError, TimeBefore1970
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.records.log_record import LogRecord
from potok.settings import Settings


def broker_at(url: str, home: Path) -> KafkaBroker:
    mark = "&" if "?" in url else "?"
    return KafkaBroker.at(f"{url}{mark}home={home}", Settings(connect_timeout_ms=200))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_SLICE_S", 0.2)


@pytest.mark.usefixtures("impatient")
def test_an_unreachable_address_is_reported_soon_with_the_reason(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    broker = broker_at(f"kafka://127.0.0.1:{port}", tmp_path)
    for attempt in (
        broker.topics,
        lambda: broker.end_offsets_of(["t"]),
        lambda: broker.append("t", [LogRecord(b"k", b"v")]),
        lambda: broker.create_topic("t"),
    ):
        with pytest.raises(KafkaUnreachable, match=r"(?s)Connection refused.*potok kafka up"):
            attempt()
    broker.close()


def test_the_connection_timeout_is_a_setting(tmp_path: Path) -> None:
    url = f"kafka://127.0.0.1:1?home={tmp_path}"
    assert KafkaBroker.at(url, Settings()).options.first_timeout_s == 2.0
    longer = Settings.load(directory=tmp_path, environ={"POTOK_CONNECT_TIMEOUT": "7 s"})
    assert KafkaBroker.at(f"{url}/other", longer).options.first_timeout_s == 7.0


def test_a_broker_that_was_sent_to_a_task_is_not_given_up_as_soon_as_one_that_was_typed(tmp_path: Path) -> None:
    here = broker_at("kafka://127.0.0.1:1", tmp_path)
    sent = pickle.dumps(here)
    assert pickle.loads(sent) is here
    here.close()
    assert pickle.loads(sent).options.first_timeout_s == clients.TIMEOUT_S


@pytest.mark.usefixtures("impatient")
def test_a_host_that_does_not_exist_is_named(tmp_path: Path) -> None:
    broker = broker_at("kafka://no-such-host.invalid:9092", tmp_path)
    with pytest.raises(KafkaUnreachable, match=r"no-such-host\.invalid"):
        broker.has_topic("t")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("acks.=all", "acks."),
        ("security.protocol=magic", "magic"),
        ("ssl.ca.location=/no/such/file&security.protocol=SSL", "ssl.ca.location failed"),
    ],
)
def test_an_unknown_client_option_is_reported_with_links_to_the_documentation(
    tmp_path: Path, option: str, message: str
) -> None:
    broker = broker_at(f"kafka://localhost:1?{option}", tmp_path)
    with pytest.raises(OptionError, match=r"\[kafka\] of potok\.toml") as raised:
        broker.topics()
    assert message in raised.value.message


def test_a_refusal_hides_secrets(tmp_path: Path) -> None:
    broker = broker_at("kafka://localhost:1?sasl.password=AAA1", tmp_path)
    error = clients.KafkaError(clients.KafkaError.SASL_AUTHENTICATION_FAILED, "AAA1 is wrong")
    translated = broker._kafka.clients.translated(error)
    assert isinstance(translated, KafkaRefused)
    assert "*** is wrong" in str(translated)
    assert "AAA1" not in str(translated)


def test_times_that_kafka_cannot_keep(log: KafkaBroker) -> None:
    log.create_topic("t")
    with pytest.raises(TimeBefore1970, match=r"-5 ms"):
        log.append("t", [LogRecord(b"k", b"v", 7), LogRecord(b"k", b"v", -5)])
    log.append("t", [LogRecord(b"k", b"v", 0)])
    assert [record.timestamp_ms for record in read_all(log, "t")] == [1]


def test_a_topic_cannot_have_an_archive(log: KafkaBroker, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="tiered storage"):
        log.create_topic("t", archive=tmp_path)
    with pytest.raises(LogError, match="maintains old records itself"):
        log.compact_topic("t")
    assert not log.has_topic("t")


def test_how_a_topic_is_kept_comes_back_as_it_was_asked_for(log: KafkaBroker) -> None:
    log.create_topic("t", cleanup_policy="compact,delete", delete_retention_ms=5, min_compaction_lag_ms=7)
    config = log.describe_topic("t").config
    assert (config.cleanup_policy, config.delete_retention_ms, config.min_compaction_lag_ms) == ("compact,delete", 5, 7)


def test_topics_of_kafka_itself_are_not_listed(log: KafkaBroker) -> None:
    log.create_topic("t")
    log.commit("somebody", "t", {0: 1})
    listed = log._kafka.clients.listed_topics()
    assert "__consumer_offsets" in listed
    assert [topic for topic in log.topics() if topic.startswith("__")] == []


def test_nothing_is_printed_by_the_client(impatient: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broker = broker_at(f"kafka://127.0.0.1:{free_ports(1)[0]}", tmp_path)
    with pytest.raises(KafkaUnreachable):
        broker.topics()
    broker.close()
    assert capfd.readouterr().err == ""
    assert os.listdir(tmp_path) == []
