from __future__ import annotations

import json
import os
import signal
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from potok.demo.play import PORTS, GeneratorDied, listening, play
from potok.demo.shop import ORDERS
from potok.dsl.builder import StreamsBuilder
from potok.errors import QueryError
from potok.log.open import open_broker
from potok.server.app_server import CannotListen
from potok.settings import Settings
from potok.statements.queries.query_tables import QueryTables


class Pretended:
    """A query that only looks on; `look` says whether it has come to an end."""

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self.stopped = False

    def wait(self, timeout: float | None = None) -> bool:
        return self._look()

    def stop(self) -> None:
        self.stopped = True


def run(directory: Path, query: Pretended, seconds: float | None = None) -> list[str]:
    lines: list[str] = []

    def start(builder: StreamsBuilder, url: str) -> Pretended:
        assert builder.name == "shop-orders"
        return query

    url = f"file:{directory}"
    play(url, port=0, rate=500, seconds=seconds, open_browser=False, say=lines.append, start=start)
    return lines


def test_orders_arrive_while_the_query_runs(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    query = Pretended(lambda: sum(broker.end_offsets(ORDERS).values()) > 100)

    run(tmp_path, query)

    assert query.stopped


def test_the_page_is_up_before_spark_is(tmp_path: Path) -> None:
    lines: list[str] = []
    states: list[str] = []

    def start(builder: StreamsBuilder, url: str) -> Pretended:
        page, _, view = lines[0].split()[2].partition("/console/")
        assert view == "#/queries/shop-orders"
        while not states or states[-1] == "":
            with urllib.request.urlopen(f"{page}/queries/shop-orders/figures", timeout=10) as answer:
                states.append(json.load(answer).get("state", ""))
        with urllib.request.urlopen(f"{page}/queries/shop-orders/topology", timeout=10) as answer:
            shape = json.load(answer)
        assert {node["label"] for node in shape["nodes"]} > {"orders", "high-value-orders", "order_counts"}
        assert [panel["kind"] for panel in shape["panels"]] == ["top", "series"]
        return Pretended(lambda: True)

    play(f"file:{tmp_path}", port=0, rate=10, open_browser=False, say=lines.append, start=start)

    assert states[-1] == "starting"


def test_without_a_port_the_first_free_one_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other, QueryTables(open_broker(tmp_path), Settings(), []) as database:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        monkeypatch.setattr("potok.demo.play.DEFAULT_PORT", taken)
        with listening(database, None) as server:
            assert taken < server.port < taken + PORTS
        with pytest.raises(CannotListen, match="choose another port"):
            listening(database, taken)


def test_it_ends_by_itself_after_so_many_seconds(tmp_path: Path) -> None:
    query = Pretended(lambda: False)

    lines = run(tmp_path, query, seconds=0)

    assert query.stopped
    assert lines[0].startswith("Potok demo: http://127.0.0.1:")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_query_in_order(tmp_path: Path, number: int) -> None:
    def look() -> bool:
        os.kill(os.getpid(), number)
        return False

    before = signal.getsignal(number)
    query = Pretended(look)

    run(tmp_path, query)

    assert query.stopped
    assert signal.getsignal(number) is before


def test_a_second_signal_does_not_wait_for_a_batch_that_hangs(tmp_path: Path) -> None:
    class Hanging(Pretended):
        def stop(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Hanging(lambda: True))


def test_a_query_that_fails_ends_the_demo_with_its_error(tmp_path: Path) -> None:
    def look() -> bool:
        raise QueryError("the disk is full")

    with pytest.raises(QueryError, match="the disk is full"):
        run(tmp_path, Pretended(look))


def test_a_generator_that_dies_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.demo.play.sys.executable", "/bin/false")
    query = Pretended(lambda: False)

    with pytest.raises(GeneratorDied, match="ended with 1"):
        run(tmp_path, query)

    assert query.stopped
