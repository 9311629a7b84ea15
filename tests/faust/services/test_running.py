"""What a worker runs where there is no topic to read, and what it says where it cannot run."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

import potok.faust as faust
from potok.errors import PotokError
from potok.faust.services.running import Idle, TakesNoTopic, started
from potok.log.kafka.errors import KafkaUnreachable
from potok.runtime.queries.lock import QueryAlreadyRuns, QueryLock


def test_an_app_with_timers_and_pages_alone_runs_until_it_is_stopped(tmp_path: Path) -> None:
    app = faust.App("timers", broker=f"file:{tmp_path}")
    reported: list[Any] = []

    @app.page("/hi")
    async def hi(web: Any, request: Any) -> Any:
        return web.text("hi")

    @app.timer(0.001)
    async def tick() -> None:
        reported.append((app.should_stop, app.web.served_at.startswith("http")))
        if callable(signal.getsignal(signal.SIGTERM)):
            os.kill(os.getpid(), signal.SIGTERM)

    @app.on_before_shutdown.connect
    async def ending(_: Any, **__: Any) -> None:
        reported.append(app.should_stop)

    app.main(["worker", "--web-port", "0"])
    assert reported[0] == (False, True)
    assert reported[-1] is True


def test_a_worker_serves_its_metrics_and_health(tmp_path: Path) -> None:
    app = faust.App("timers", broker=f"file:{tmp_path}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found: list[str] = []

    @app.timer(0.001)
    async def tick() -> None:
        if not found and callable(signal.getsignal(signal.SIGTERM)):
            found.extend(httpx.get(f"http://127.0.0.1:{port}{path}").text for path in ("/metrics", "/livez"))
            os.kill(os.getpid(), signal.SIGTERM)

    app.main(["worker", "--metrics", str(port), "--without-web"])
    assert "potok_build_info" in found[0]
    assert '"ok":true' in found[1]


def test_until_the_end_of_nothing_a_worker_ends_at_once(tmp_path: Path) -> None:
    app = faust.App("timers", broker=f"file:{tmp_path}")
    ended = threading.Event()
    app.on_before_shutdown.connect(lambda *_, **__: ended.set())
    app.main(["worker", "--until-end", "--without-web"])
    assert ended.is_set()
    assert isinstance(started(app, until_end=True), Idle)


def test_agents_on_channels_alone_are_refused_with_what_to_write_instead() -> None:
    app = faust.App("bound")
    actions = app.channel(value_type=str)

    @app.agent(actions, name="stage1-agent")
    async def stage(stream: Any) -> None:
        async for _ in stream:
            pass

    with pytest.raises(TakesNoTopic, match='read only channels \\("stage1-agent"\\)') as caught:
        started(app, until_end=True)
    assert 'app.topic("stage1-agent", value_type=...)' in caught.value.hint
    with pytest.raises(PotokError, match="timers, tasks and pages cannot put"):
        actions.put("x")


def test_an_app_without_agents_has_no_topology_and_says_how_it_is_run() -> None:
    with pytest.raises(TakesNoTopic, match='app "empty" has no agent') as caught:
        faust.App("empty").build()
    assert "python shop.py worker" in caught.value.hint


def test_a_second_worker_is_reported_for_apps_and_not_for_builders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = faust.App("shop", broker=f"file:{tmp_path}")

    @app.agent("orders")
    async def count(stream: Any) -> None:
        async for _ in stream:
            pass

    def held(*_: Any, **__: Any) -> None:
        QueryLock(tmp_path / "lock", "shop")

    lock = QueryLock(tmp_path / "lock", "shop")
    monkeypatch.setattr("potok.spark.run.start", held)
    try:
        with pytest.raises(QueryAlreadyRuns, match='"shop" is already running') as caught:
            started(app, until_end=True)
    finally:
        lock.release()
    assert 'App("other-name")' in caught.value.hint
    assert "StreamsBuilder" not in caught.value.hint


LAST: dict[str, int] = {}


def test_a_worker_warns_of_variables_that_its_agents_change_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = faust.App("shop", broker=f"file:{tmp_path}")

    @app.agent("orders")
    async def count(stream: Any) -> None:
        async for order in stream:
            LAST[order] = 1

    monkeypatch.setattr("potok.spark.run.start", lambda *_, **__: "query")
    assert started(app, until_end=True) == "query"
    assert ['agent "count" changes the variable "LAST"' in text for text in caplog.messages] == [True]


def test_a_port_in_use_is_reported_with_the_worker_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = faust.App("shop", broker=f"file:{tmp_path}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SystemExit):
            app.main(["worker", "--web-port", str(taken.getsockname()[1])])
    said = capsys.readouterr().err
    assert "in use" in said
    assert "--web-port" in said


def test_app_log_is_both_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = faust.App("shop", broker=f"file:{tmp_path}")
    with caplog.at_level("DEBUG", "potok.faust"):
        app.log.info("hello %s", "ann")
        app.log.warn("careful")
        app.log.crit("too late")
        app.log.dev("between us")
        app.logger.error("oh")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "hello ann"),
        ("WARNING", "careful"),
        ("CRITICAL", "too late"),
        ("DEBUG", "between us"),
        ("ERROR", "oh"),
    ]
    app.log().create_topic("orders", 2)
    assert app.log().partitions("orders") == 2


def test_flow_control_is_accepted_where_it_can_be() -> None:
    control = faust.App("app").flow_control
    control.resume()
    assert control.is_active()
    with pytest.raises(PotokError, match="suspend is not supported"):
        control.suspend()


def test_a_time_by_cron_that_is_none_names_its_line() -> None:
    app = faust.App("app")
    with pytest.raises(PotokError, match="is not a cron expression") as caught:
        app.crontab("*/5 * * *")(lambda: None)
    assert caught.value.at is not None
    assert Path(caught.value.at.file).name == Path(__file__).name


async def _loop(stream: Any) -> None:
    async for _ in stream:
        pass


def test_a_stream_of_the_dsl_in_a_loop_says_where_loops_belong() -> None:
    stream = faust.App("app").stream("orders")
    with pytest.raises(PotokError, match="it cannot be iterated") as caught:
        _loop(stream).send(None)
    assert "@app.agent(topic)" in caught.value.hint


def test_an_unreachable_kafka_is_reported_with_the_embedded_alternative() -> None:
    assert 'broker="file:./data"' in KafkaUnreachable("localhost:9092", "refused").hint
