"""What happens in the worker besides agents: signals, services, settings."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import potok.faust as faust
from potok.faust.messaging.message import TP
from potok.faust.services.services import Services


def test_signals_are_sent_in_the_order_of_the_life_of_a_worker(tmp_path: Any) -> None:
    app = faust.App("app", broker=f"file:{tmp_path}")
    app.log().create_topic("orders", 2)
    reported: list[Any] = []
    started = threading.Event()

    @app.agent("orders")
    async def work(stream: Any) -> None:
        async for _ in stream:
            pass

    @app.on_partitions_assigned.connect
    async def assigned(app: Any, assigned: Any, **_: Any) -> None:
        reported.append(sorted(assigned))

    @app.on_worker_init.connect
    def broken(app: Any, **_: Any) -> None:
        reported.append("init")
        raise RuntimeError("nobody minds")

    @app.on_started.connect(weak=False)
    async def on_started(app: Any, **_: Any) -> None:
        reported.append("started")
        started.set()

    app.on_before_shutdown.connect(lambda app, **_: reported.append("stopping"))
    with Services(app, app.timed):
        assert started.wait(30)
    assert reported == ["init", [TP("orders", 0), TP("orders", 1)], "started", "stopping"]


def test_a_service_is_started_and_stopped_with_the_worker_and_works_meanwhile(tmp_path: Any) -> None:
    app = faust.App("app", broker=f"file:{tmp_path}")
    reported: list[str] = []
    ticked = threading.Event()

    class Part(faust.Service):
        async def on_start(self) -> None:
            reported.append("part")

    @app.service
    class Feed(faust.Service):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.add_dependency(Part())

        async def on_first_start(self) -> None:
            reported.append("first")

        async def on_start(self) -> None:
            reported.append("start")

        async def on_stop(self) -> None:
            reported.append("stop")

        @faust.Service.task
        async def wait(self) -> None:
            await self.wait_until_stopped()
            reported.append("never")

        @faust.Service.timer(0.001)
        async def tick(self) -> None:
            ticked.set()
            raise RuntimeError("again")

    with Services(app, app.timed):
        assert ticked.wait(30)
    assert reported[:3] == ["first", "start", "part"]
    assert reported[-1] == "stop" or reported[-1] == "never"
    assert issubclass(Feed, faust.Service)


def test_settings_are_read_and_taken_from_an_object() -> None:
    app = faust.App("app", broker="kafka://a:1", stream_buffer_maxsize=5)
    assert (app.conf.id, app.conf.broker, app.conf.stream_buffer_maxsize, app.conf.datadir) == (
        "app",
        "kafka://a:1",
        5,
        None,
    )
    app.config_from_object({"broker": "kafka://b:2", "topic_partitions": 3, "unrelated": 1})
    assert (app.broker, app.topic("t").partitions) == ("kafka://b:2", 3)
    with pytest.raises(AttributeError):
        app.conf.nonsense  # noqa: B018


def test_who_wants_to_see_what_is_sent_sees_it(tmp_path: Any) -> None:
    app = faust.App("app", broker=f"file:{tmp_path}")
    app.log().create_topic("out", 1)

    @app.on_produce_message.connect
    def sign(app: Any, key: Any, headers: list[Any], **_: Any) -> None:
        headers.append(("signed", key))

    app.topic("out").send_soon(key="k", value=1)
    (batch,) = app.log().read("out", 0, 0, 1)
    assert batch.to_pylist()[0]["headers"] == [{"name": "signed", "value": b"k"}]


def test_methods_of_an_app_of_its_own_are_called(tmp_path: Any) -> None:
    reported: list[str] = []
    started = threading.Event()

    class Shop(faust.App):
        async def on_start(self) -> None:
            reported.append("start")

        async def on_started(self) -> None:  # type: ignore[override]
            reported.append("started")
            started.set()

        async def on_stop(self) -> None:
            reported.append("stop")

    app = Shop("app", broker=f"file:{tmp_path}")
    with Services(app, app.timed):
        assert started.wait(30)
    assert reported == ["start", "started", "stop"]
