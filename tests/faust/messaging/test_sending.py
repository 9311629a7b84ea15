"""What a send gives, whom it tells, and the command that sends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.faust.messaging.message import TP
from potok.faust.types import RecordMetadata


class Purchase(faust.Record):
    user: str
    amount: float


def app_at(directory: Path) -> faust.App:
    app = faust.App("shop", broker=f"file:{directory}")
    orders = app.topic("orders", value_type=Purchase)
    app.Table("totals", default=float, help="How much each has spent.")

    @app.agent(orders)
    async def count(stream: Any) -> None:
        async for _ in stream:
            pass

    return app


def values(app: faust.App, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    log = app.log()
    batches = log.read(topic, 0, 0, log.end_offsets_of([topic])[topic][0])
    return [(row["key"], row["value"]) for batch in batches for row in batch.to_pylist()]


def test_a_send_from_outside_of_agents_returns_the_position_however_often_it_is_awaited(tmp_path: Path) -> None:
    app = app_at(tmp_path)
    (orders,) = app.topics

    async def send() -> tuple[Any, Any]:
        first = await orders.send(value=Purchase(user="ann", amount=1.0))
        second = await app.send("orders", value=Purchase(user="ann", amount=2.0))
        return first, await second

    first, second = asyncio.run(send())
    assert (first.topic, first.partition, first.offset) == ("orders", 0, 0)
    assert isinstance(second, RecordMetadata)
    assert (second.offset, second.tp, second.done(), second.result()) == (1, TP("orders", 0), True, second)


def test_sync_code_gets_the_position_of_its_record(tmp_path: Path) -> None:
    (orders,) = app_at(tmp_path).topics
    sent: Any = orders.send_soon(value=Purchase(user="ann", amount=1.0))
    assert (sent.partition, sent.offset) == (0, 0)


def test_sync_and_async_callbacks_are_called_outside_of_agents(tmp_path: Path) -> None:
    (orders,) = app_at(tmp_path).topics
    reported: list[Any] = []

    async def later(sent: Any) -> None:
        reported.append(("later", sent.offset))

    async def send() -> list[Any]:
        return [
            await orders.send(
                value=Purchase(user="ann", amount=1.0), callback=lambda sent: reported.append(sent.offset)
            ),
            await orders.send(value=Purchase(user="ann", amount=1.0), callback=later, force=True),
        ]

    assert [sent.offset for sent in asyncio.run(send())] == [0, 1]
    orders.send_soon(value=Purchase(user="ann", amount=1.0), callback=lambda sent: reported.append(sent.offset))
    assert reported == [0, ("later", 1), 2]


def test_inside_an_agent_the_position_is_unknown_and_a_callback_is_called() -> None:
    app = faust.App("app")
    numbers, out, places = app.topic("numbers"), app.topic("out"), app.topic("places")
    channel = app.channel()

    @app.agent(channel)
    async def put(stream: Any) -> None:
        async for _ in stream:
            pass

    @app.agent(numbers)
    async def work(stream: Any) -> None:
        async for number in stream:
            reported: list[Any] = []
            sent = await (await out.send(value=number, callback=reported.append))
            in_memory = await channel.send(value=number, callback=reported.append)
            assert reported == [sent, in_memory]
            await places.send(value=[sent.topic, sent.partition, sent.offset, in_memory.topic])

    with InProcess(app) as driver:
        driver.send("numbers", 1)
        driver.run()
        assert driver.reasons() == []
        assert [record.value for record in driver.read("places")] == [["out", None, None, channel.name]]
        assert [record.value for record in driver.read("out")] == [1]


def test_a_serializer_may_be_for_one_record_alone(tmp_path: Path) -> None:
    app = faust.App("shop", broker=f"file:{tmp_path}")
    plain = app.topic("plain")
    plain.send_soon(key="k", value="v")
    plain.send_soon(key="k", value=b"v", value_serializer="raw", key_serializer="json")
    plain.send_soon(value=b"w", schema=faust.Schema(value_serializer="raw"))
    assert values(app, "plain") == [(b"k", b'"v"'), (b'"k"', b"v"), (None, b"w")]
    with pytest.raises(TypeError, match="'colour'"):
        plain.send_soon(value="v", colour="red")


ORDER = '{"user": "ann", "amount": 1.5}'
DATA = json.dumps(json.loads(ORDER), separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "arguments",
    [
        ["@count", "-k", "K", ORDER],
        ["@count", ORDER, "-k", "K"],
        ["-k", "K", "@count", ORDER],
        ["orders", "--key", "K", ORDER],
    ],
)
def test_send_takes_its_arguments_in_any_order_and_prints_where_the_record_went(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = app_at(tmp_path)
    app.main(["send", *arguments])
    assert capsys.readouterr().out == "orders, partition 0, offset 0\n"
    assert values(app, "orders") == [(b"K", DATA)]


def test_send_repeats_and_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = app_at(tmp_path)
    app.main(["send", "--json", "-r", "2", "--max-latency", "0.001", "-V", Purchase.__namespace__, "@count", ORDER])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"topic": "orders", "partition": 0, "offset": offset} for offset in (0, 1)]


def test_send_without_a_value_deletes(tmp_path: Path) -> None:
    app = faust.App("shop", broker=f"file:{tmp_path}")
    app.topic("plain")
    app.main(["send", "plain", "-k", "K", "--key-serializer", "json"])
    assert values(app, "plain") == [(b'"K"', None)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["@count", ORDER, "--partition", "1"], "names a partition"),
        (["@nobody", ORDER], 'no agent "nobody"'),
        (["@count", ORDER, "-V", "Nothing"], 'no record class "Nothing"'),
        (["@count", ORDER, "more"], "unrecognized arguments: more"),
        (["@count", ORDER, "--colour"], "unrecognized arguments: --colour"),
    ],
)
def test_send_says_what_it_cannot_do(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        app_at(tmp_path).main(["send", *arguments])
    assert said in capsys.readouterr().err


def test_a_broker_on_the_command_line_is_taken_instead_of_that_of_the_program(tmp_path: Path) -> None:
    app = app_at(tmp_path / "one")
    app.main(["send", "@count", ORDER, "--broker", f"file:{tmp_path / 'two'}"])
    assert not (tmp_path / "one").exists()
    assert values(app, "orders") == [(None, DATA)]


def test_tables_are_listed_with_their_help(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app_at(tmp_path).main(["tables"])
    assert capsys.readouterr().out.splitlines()[1].endswith("  How much each has spent.")


def test_a_record_that_does_not_fit_is_not_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app_at(tmp_path).main(["send", "@count", '{"user": "ann"}'])
    assert "amount" in capsys.readouterr().err
