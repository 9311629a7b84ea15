from __future__ import annotations

from typing import Any, NoReturn

import pytest

from potok.log.kafka.kafka_broker import KafkaBroker


def test_a_topic_that_is_there_is_left_alone_without_the_right_to_create_one(
    log: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create_topic("there", 2)

    def refused(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("brokers look at the right before they look whether the topic exists")

    monkeypatch.setattr(log._kafka.clients, "admin", _Without(log._kafka.clients.admin(), "create_topics", refused))
    log.create_topic("there", 1, exist_ok=True)
    assert log.partitions("there") == 2


class _Without:
    """A client's administrator, but for one of its requests."""

    def __init__(self, admin: Any, name: str, instead: Any) -> None:
        self._admin, self._name, self._instead = admin, name, instead

    def __call__(self) -> _Without:
        return self

    def __getattr__(self, name: str) -> Any:
        return self._instead if name == self._name else getattr(self._admin, name)
