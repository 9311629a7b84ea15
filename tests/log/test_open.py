from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from potok.log import open_broker
from potok.log.errors import BrokerClosed, BrokerNotSupported


def test_a_relative_url_starts_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    broker = open_broker("file:./data")
    assert broker.url == f"file:{tmp_path / 'data'}"
    assert (tmp_path / "data" / "log").is_dir()
    broker.close()


def test_all_spellings_of_a_directory_are_one_broker(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    assert open_broker(str(tmp_path)) is broker
    assert open_broker(f"file:{tmp_path}") is broker
    assert open_broker(f"file://{tmp_path}") is broker
    assert open_broker(broker.url) is broker
    broker.close()


def test_a_closed_broker_is_reopened(tmp_path: Path) -> None:
    first = open_broker(tmp_path)
    first.create_topic("orders")
    first.close()
    first.close()
    with pytest.raises(BrokerClosed):
        first.topics()
    second = open_broker(tmp_path)
    assert second.topics() == ["orders"]
    second.close()


def test_a_pickled_broker_opens_the_same_directory(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    assert pickle.loads(pickle.dumps(broker)) is broker
    broker.close()


def test_a_kafka_url_opens_nothing_before_it_is_used(tmp_path: Path) -> None:
    home = tmp_path / "home"
    broker = open_broker(f"kafka://localhost:1?home={home}")
    assert broker.url == f"kafka://localhost:1?home={home}"
    assert open_broker(f"kafka://localhost:1?home={home}") is broker
    assert pickle.loads(pickle.dumps(broker)) is broker
    assert broker.get_metadata("a") is None
    assert broker.list_metadata("") == {}
    assert not home.exists()
    broker.set_metadata({"a": b"1"})
    assert open_broker(home).get_metadata("a") == b"1"
    broker.close()
    assert open_broker(f"kafka://localhost:1?home={home}") is not broker


@pytest.mark.parametrize("url", ["http://example.org", "file:"])
def test_a_url_of_no_known_broker_is_refused_with_a_hint(url: str) -> None:
    with pytest.raises(BrokerNotSupported, match=r"hint: .*file:./data"):
        open_broker(url)
