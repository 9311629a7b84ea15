"""Instances of sagas over HTTP: lists, one with its history, changes as they happen, and actions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from patterns.sagas.checkout import event, play, state
from patterns.sagas.shop import STATES, fill
from potok.records.position import Position
from potok.server.access.tokens import Tokens
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.queries.query_tables import QueryTables
from potok.testing import TestDriver


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[TestDriver]:
    with fill(tmp_path) as found:
        yield found


@contextmanager
def serving(driver: TestDriver, tokens: Tokens | None = None) -> Iterator[httpx.Client]:
    with (
        QueryTables(driver.broker, Settings(), ["shop"]) as database,
        Server(database, port=0, tokens=tokens) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        yield client


@pytest.fixture
def client(driver: TestDriver) -> Iterator[httpx.Client]:
    with serving(driver) as found:
        yield found


def test_instances_are_listed_with_those_that_wait_for_operators_first(client: httpx.Client) -> None:
    found = client.get("/sagas").json()
    (saga,) = found["sagas"]
    assert (saga["name"], saga["query"], saga["by"]) == ("checkout", "shop", "order_id")
    order = ["stuck", "undoing", "waiting", "waiting/2", "gone", "done"]
    assert [one["id"] for one in found["instances"]] == order
    assert {one["id"]: one["state"] for one in found["instances"]} == STATES
    assert [one["id"] for one in client.get("/sagas/checkout").json()["instances"]] == order


def test_a_list_is_narrowed_to_a_state(client: httpx.Client) -> None:
    (stuck,) = client.get("/sagas?state=stuck").json()["instances"]
    assert (stuck["id"], stuck["steps"], stuck["next_timer"]) == ("stuck", ["payment"], None)
    assert stuck["reason"] == 'the compensation of step "payment" timed out'


def test_a_list_has_pages(client: httpx.Client) -> None:
    first = client.get("/sagas/checkout?state=running&limit=1").json()
    assert [one["id"] for one in first["instances"]] == ["waiting"] and first["next"] == "waiting"
    second = client.get("/sagas/checkout", params={"state": "running", "limit": 1, "after": first["next"]}).json()
    assert [one["id"] for one in second["instances"]] == ["waiting/2"] and second["next"] is None


def test_an_instance_shows_its_steps_timers_and_history(client: httpx.Client) -> None:
    found = client.get("/sagas/checkout/undoing").json()
    assert (found["saga"], found["id"], found["state"], found["version"]) == ("checkout", "undoing", "aborting", 1)
    assert found["steps"]["payment"]["state"] == "undoing" and found["steps"]["stock"]["state"] == "failed"
    assert found["next_timer"]["name"] == "undo_timeout:payment"
    rendered = [(one["what"], one.get("command"), one["event_id"]) for one in found["history"]]
    assert rendered[0] == ("started", None, "order.created-undoing-1")
    assert rendered[-1] == ("compensating", "RefundPayment", "n2")
    assert client.get("/sagas/checkout/waiting/2").json()["id"] == "waiting/2"


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/sagas/checkuot", 404, 'there is no saga \\"checkuot\\"'),
        ("/sagas/checkout/nobody", 404, 'has no instance \\"nobody\\"'),
        ("/sagas?state=lost", 400, "is not a state"),
        ("/sagas?saga=nothing", 404, "there is no saga"),
        ("/sagas?limit=0", 400, "limit"),
        ("/sagas/checkout?limit=1000000000", 400, "limit exceeds"),
        ("/sagas/checkout?after=x", 400, "pages of all states cannot be continued"),
        ("/sagas/checkout/changes?from=later", 400, "a feed cannot start"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(client: httpx.Client, path: str, status: int, text: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status and text in answer.text and answer.json()["hint"]


def test_actions_take_effect_with_the_next_batch(driver: TestDriver, client: httpx.Client) -> None:
    answer = client.post("/sagas/checkout/stuck/skip")
    assert (answer.status_code, answer.json()["state"]) == (202, "stuck")
    assert client.post("/sagas/checkout/waiting/2/abort").status_code == 202
    driver.run()
    assert (state(driver, "stuck"), state(driver, "waiting/2")) == ("aborted", "aborting")


def test_an_action_with_an_idempotency_key_acts_once(driver: TestDriver, client: httpx.Client) -> None:
    for _ in range(2):
        client.post("/sagas/checkout/waiting/abort", headers={"Idempotency-Key": "a1"})
    driver.run()
    assert state(driver, "waiting") == "aborting"  # a second abort would have given up the compensation


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/sagas/checkout/waiting/retry", 409, "is running and does not take retry"),
        ("/sagas/checkout/done/abort", 409, "is completed and does not take abort"),
        ("/sagas/checkout/waiting/pause", 400, "is not an action"),
        ("/sagas/checkout/nobody/abort", 404, "has no instance"),
        ("/sagas/other/x/abort", 404, "there is no saga"),
    ],
)
def test_an_action_that_cannot_be_is_refused(client: httpx.Client, path: str, status: int, text: str) -> None:
    answer = client.post(path)
    assert answer.status_code == status and text in answer.text


def test_reading_and_acting_need_their_scopes(driver: TestDriver) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": "read=a-long-and-secret-token,write=another-long-secret-token"})
    with serving(driver, tokens) as client:
        reader = {"Authorization": "Bearer a-long-and-secret-token"}
        writer = {"Authorization": "Bearer another-long-secret-token"}
        assert client.get("/sagas").status_code == 401
        assert client.get("/sagas", headers=reader).status_code == 200
        assert client.post("/sagas/checkout/waiting/abort", headers=reader).status_code == 403
        assert client.post("/sagas/checkout/waiting/abort", headers=writer).status_code == 202


def test_changes_are_pushed(driver: TestDriver, client: httpx.Client) -> None:
    found: list[dict[str, Any]] = []
    with client.stream("GET", "/sagas/checkout/changes") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for number, line in enumerate(answer.iter_lines()):
            if number == 0:
                play(driver, event("payment.processed", "waiting", payment_id="p3"))
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
                break
    assert (found[0]["id"], found[0]["state"], found[0]["steps"]) == ("waiting", "running", ["stock"])


def test_a_feed_from_the_beginning_has_all_instances(client: httpx.Client) -> None:
    found: dict[str, str] = {}
    with client.stream("GET", "/sagas/checkout/changes?from=beginning") as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                one = json.loads(line[6:])
                found[one["id"]] = one["state"]
            if len(found) == len(STATES):
                break
    assert found == STATES


@pytest.mark.parametrize("path", ["/sagas", "/sagas?saga=checkout", "/sagas/checkout", "/sagas/checkout/late"])
def test_reads_wait_for_a_position(driver: TestDriver, client: httpx.Client, path: str) -> None:
    driver.send("order-events", event("order.created", "late", amount=1.0, item="lamp"), key="late")
    waits = {"Potok-Wait-For": str(Position({"order-events": driver.broker.end_offsets("order-events")}))}
    late = client.get(path, headers={**waits, "Prefer": "wait=0"})
    assert (late.status_code, late.json()["query"]) == (504, "shop")
    driver.run()
    assert client.get(path, headers=waits).status_code == 200
    assert client.get("/sagas/checkout/late").json()["state"] == "running"
