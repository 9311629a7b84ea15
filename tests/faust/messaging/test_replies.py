"""Who asks an agent that fails hears of it, and does not wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.faust.messaging.replies import ASKED, FAILED, AskFailed, NoReply
from potok.faust.records.field_kinds import StringField


def ask_all(app: faust.App, agent: Any, values: list[Any], directory: Any) -> list[Any]:
    """What comes of questions that one batch has all of."""

    async def ask(driver: InProcess) -> list[Any]:
        asked = [asyncio.ensure_future(agent.ask(value, timeout=30)) for value in values]
        topic = agent.topic.name
        while not driver.broker.has_topic(topic) or sum(driver.broker.end_offsets(topic).values()) < len(values):
            await asyncio.sleep(0)
        driver.run()
        return await asyncio.gather(*asked, return_exceptions=True)

    with InProcess(app, directory=directory) as driver:
        return asyncio.run(ask(driver))


@pytest.mark.parametrize("concurrency", [1, 3])
def test_an_agent_error_is_sent_to_its_caller_and_others_get_their_replies(tmp_path: Any, concurrency: int) -> None:
    app = faust.App("bank", broker=f"file:{tmp_path}")

    @app.agent("transfers", concurrency=concurrency)
    async def transfer(stream: Any) -> Any:
        async for amount in stream:
            yield 100 / amount

    high, failed, low = ask_all(app, transfer, [10, 0, 4], tmp_path)
    assert (high, low) == (10.0, 25.0)
    assert isinstance(failed, AskFailed)
    assert failed.agent == "transfer"
    assert failed.why.startswith("ZeroDivisionError: division by zero, at ")
    assert "potok dead-letters list --query bank" in failed.hint


def test_a_value_of_the_wrong_type_for_the_agent_is_reported() -> None:
    class Transfer(faust.Record, validation=True):
        account: str = StringField(max_length=5)

    app = faust.App("bank")

    @app.agent(app.topic("transfers", value_type=Transfer))
    async def transfer(stream: Any) -> Any:
        async for each in stream:
            yield each.account

    with InProcess(app) as driver:
        driver.send("transfers", {"account": "much too long"}, headers={ASKED: b"7"})
        driver.run()
        (answer,) = driver.read("bank-replies")
        assert driver.reasons() == [("transfers", "decode")]
    assert dict(answer.headers)[FAILED] == b"transfer"
    assert "account" in answer.value


def test_another_agent_that_fails_on_the_same_record_answers_nothing(tmp_path: Any) -> None:
    app = faust.App("bank", broker=f"file:{tmp_path}")
    transfers = app.topic("transfers")

    @app.agent(transfers)
    async def audit(stream: Any) -> Any:
        async for _ in stream:
            raise ValueError("no auditor")
            yield

    @app.agent(transfers)
    async def transfer(stream: Any) -> Any:
        async for amount in stream:
            yield amount * 2

    assert ask_all(app, transfer, [21], tmp_path) == [42]


def test_no_reply_is_sent_without_a_request() -> None:
    app = faust.App("bank")

    @app.agent("transfers")
    async def transfer(stream: Any) -> Any:
        async for amount in stream:
            yield 100 / amount

    with InProcess(app) as driver:
        driver.send("transfers", 0)
        driver.send("transfers", 0, headers={ASKED: b"7"})
        driver.run()
        (answer,) = driver.read("bank-replies")
        assert driver.reasons() == [("transfer", "error")] * 2
    assert dict(answer.headers)[FAILED] == b"transfer"


def test_a_missing_reply_times_out_with_a_hint_to_dead_letters(tmp_path: Any) -> None:
    app = faust.App("bank", broker=f"file:{tmp_path}")

    @app.agent("transfers")
    async def transfer(stream: Any) -> Any:
        async for _ in stream:
            yield

    with pytest.raises(NoReply) as raised:
        asyncio.run(transfer.ask(1, timeout=0.01))
    assert "potok dead-letters list --query bank" in raised.value.hint


def test_who_waits_for_an_answer_can_be_cancelled(tmp_path: Any) -> None:
    app = faust.App("bank", broker=f"file:{tmp_path}")

    @app.agent("transfers")
    async def transfer(stream: Any) -> Any:
        async for _ in stream:
            yield

    async def give_up() -> list[Any]:
        asked = asyncio.ensure_future(transfer.ask(1, timeout=3600))
        while not app.log().has_topic("transfers") or not sum(app.log().end_offsets("transfers").values()):
            await asyncio.sleep(0)
        asked.cancel()
        return await asyncio.gather(asked, return_exceptions=True)

    assert isinstance(asyncio.run(give_up())[0], asyncio.CancelledError)
