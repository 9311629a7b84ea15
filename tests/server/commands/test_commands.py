"""Commands to aggregates over HTTP."""

from __future__ import annotations

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pytest

from potok.patterns.aggregates.client import find_result
from potok.records.log_record import LogRecord
from potok.server.access.tokens import Tokens
from potok.server.commands.ids import sent_of
from potok.server.server import Server
from server.commands.conftest import Shop

CREATE = {"order_id": "o1", "amount": 9.5}


def send(client: httpx.Client, command: str, data: Any, key: str = "o1", **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(f"/commands/orders/{quote(key, safe='')}/{command}", json=data, headers=sent)


def commands(shop: Shop) -> int:
    return sum(shop.broker.end_offsets("orders-commands").values())


def test_an_accepted_command_answers_its_events_and_the_version(client: httpx.Client) -> None:
    answer = send(client, "CreateOrder", CREATE)
    assert (answer.status_code, answer.headers["ETag"]) == (200, '"1"')
    body = answer.json()
    assert (body["status"], body["version"], body["command"], body["repeated"]) == (
        "accepted",
        1,
        "CreateOrder",
        False,
    )
    assert [(event["type"], event["data"]["amount"]) for event in body["events"]] == [("order.created", 9.5)]
    assert send(client, "PayOrder", {"order_id": "o1"}).headers["ETag"] == '"2"'


def test_what_a_command_has_changed_is_read_at_its_position(client: httpx.Client) -> None:
    position = send(client, "CreateOrder", CREATE).headers["Potok-Position"]
    row = client.get("/tables/orders/o1", headers={"Potok-Wait-For": position})
    assert row.json()["VALUE"]["version"] == 1


def test_a_rejected_command_is_a_conflict_with_its_reason(client: httpx.Client) -> None:
    answer = send(client, "PayOrder", {"order_id": "o1"})
    assert (answer.status_code, answer.headers["ETag"]) == (409, '"0"')
    problem = answer.json()
    assert problem["type"] == "urn:potok:command-rejected"
    assert (problem["detail"], problem["command"]["status"]) == ("only a created order can be paid", "rejected")


def test_a_command_for_another_version_is_refused(client: httpx.Client) -> None:
    assert send(client, "CreateOrder", CREATE, If_Match='"1"').status_code == 412
    assert send(client, "CreateOrder", CREATE, If_Match="*").status_code == 412
    assert send(client, "CreateOrder", CREATE, If_None_Match="*").status_code == 200
    assert send(client, "CreateOrder", CREATE, If_None_Match="*").status_code == 412
    late = send(client, "PayOrder", {"order_id": "o1"}, If_Match='"7"')
    assert (late.status_code, late.headers["ETag"], late.json()["command"]["version"]) == (412, '"1"', 1)
    assert send(client, "PayOrder", {"order_id": "o1"}, If_Match='"1"').status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"If-Match": "3"},
        {"If-Match": 'W/"3"'},
        {"If-Match": '"3", "4"'},
        {"If-Match": '"x"'},
        {"If-Match": '"' + "9" * 40 + '"'},
        {"If-None-Match": '"3"'},
        {"If-Match": '"1"', "If-None-Match": "*"},
        {"Idempotency-Key": ""},
        {"Idempotency-Key": "k" * 201},
        {"Idempotency-Key": "a\tb"},
    ],
)
def test_headers_that_say_nothing_definite_are_refused_and_nothing_is_sent(
    client: httpx.Client, shop: Shop, headers: dict[str, str]
) -> None:
    answer = client.post("/commands/orders/o1/CreateOrder", json=CREATE, headers=headers)
    assert (answer.status_code, commands(shop)) == (400, 0)
    assert answer.json()["hint"]


def test_data_that_does_not_fit_is_invalid(client: httpx.Client) -> None:
    answer = send(client, "CreateOrder", {"order_id": "o1", "amount": "much"})
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:potok:command-invalid")
    assert "amount" in answer.json()["detail"]


def test_a_handler_that_raises_changes_nothing(client: httpx.Client) -> None:
    answer = send(client, "Note", {"order_id": "o1", "note": "boom", "times": 2})
    assert (answer.status_code, answer.json()["command"]["error"]) == (500, "ZeroDivisionError")
    assert send(client, "CreateOrder", CREATE).headers["ETag"] == '"1"'


@pytest.mark.parametrize("body", [b"{", b"[1]", b"null", b'"x"', b"\xff", b"{" * 300_000, b'{"a":1e999}'])
def test_a_body_that_is_not_an_object_is_refused_and_nothing_is_sent(
    client: httpx.Client, shop: Shop, body: bytes
) -> None:
    answer = client.post("/commands/orders/o1/CreateOrder", content=body)
    assert (answer.status_code, commands(shop)) == (400, 0)


def test_an_unknown_aggregate_or_command_is_not_found_and_nothing_is_sent(client: httpx.Client, shop: Shop) -> None:
    other = client.post("/commands/order/o1/CreateOrder", json=CREATE)
    assert (other.status_code, other.json()["hint"]) == (404, "did you mean orders?")
    misspelt = send(client, "CreateOrdr", CREATE)
    assert (misspelt.status_code, misspelt.json()["hint"]) == (404, "did you mean CreateOrder?")
    assert client.get("/commands/orders/o1/CreateOrder").status_code == 405
    assert client.post("/commands/orders//CreateOrder", json=CREATE).status_code == 404
    assert commands(shop) == 0


@pytest.mark.parametrize("key", ["a/b", "ключ", "50%", "...", "a b?c#d", "x" * 3_000, "\U0001f600"])
def test_an_aggregate_may_have_any_id(client: httpx.Client, key: str) -> None:
    answer = send(client, "CreateOrder", CREATE, key)
    assert (answer.status_code, answer.json()["aggregate_id"]) == (200, key)


def test_the_same_key_runs_a_command_once(client: httpx.Client) -> None:
    first = send(client, "Note", {"order_id": "o1", "note": "n"}, Idempotency_Key="k1")
    again = send(client, "Note", {"order_id": "o1", "note": "n"}, Idempotency_Key="k1")
    assert (first.status_code, again.status_code) == (200, 200)
    assert (first.json()["repeated"], again.json()["repeated"]) == (False, True)
    assert again.json()["events"] == first.json()["events"]
    assert again.headers["ETag"] == first.headers["ETag"] == '"1"'
    other = send(client, "CreateOrder", CREATE, Idempotency_Key="k1")
    assert (other.status_code, other.json()["type"]) == (422, "urn:potok:key-used-before")


def test_a_rejection_is_repeated_as_well(client: httpx.Client) -> None:
    for _ in range(2):
        assert send(client, "PayOrder", {"order_id": "o1"}, Idempotency_Key="k").status_code == 409
        send(client, "CreateOrder", CREATE)


def test_equal_requests_at_once_run_a_command_once(client: httpx.Client, shop: Shop) -> None:
    with ThreadPoolExecutor(8) as pool, shop.held:
        data = {"order_id": "o1", "note": "n"}
        asked = [pool.submit(send, client, "Note", data, Idempotency_Key="k") for _ in range(8)]
        while commands(shop) < 8:
            threading.Event().wait(0.001)
        shop.held.release()
        answers = [found.result(20) for found in asked]
        shop.held.acquire()
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["ETag"] for answer in answers} == {'"1"'}
    assert len({answer.json()["events"][0]["id"] for answer in answers}) == 1


def test_a_command_need_not_be_waited_for(client: httpx.Client, shop: Shop) -> None:
    with shop.held:
        sent = client.post("/commands/orders/o1/CreateOrder?wait=0", json=CREATE)
        assert (sent.status_code, sent.json()["status"]) == (202, "sent")
        location = sent.headers["Location"]
        assert location == f"/commands/{sent.json()['id']}"
        assert sent.headers["Potok-Position"].startswith("orders-commands:")
        assert client.get(location).status_code == 202
    found = client.get(f"{location}?wait=20")
    assert (found.status_code, found.json()["status"], found.headers["ETag"]) == (200, "accepted", '"1"')
    assert client.get(location).json() == found.json()
    preferred = client.post("/commands/orders/o2/CreateOrder", json=CREATE, headers={"Prefer": "respond-async"})
    assert preferred.status_code == 202


def test_a_result_that_does_not_come_in_time_can_be_asked_for(client: httpx.Client, shop: Shop) -> None:
    with shop.held:
        sent = client.post("/commands/orders/o1/CreateOrder?wait=0.05", json=CREATE)
        assert sent.status_code == 202
    rejected = client.post("/commands/orders/o1/CreateOrder", json=CREATE)
    assert rejected.status_code == 409
    assert client.get(sent.headers["Location"]).json()["status"] == "accepted"
    status = client.get(f"/commands/{rejected.json()['command']['id']}")
    assert (status.status_code, status.json()["status"]) == (200, "rejected")


@pytest.mark.parametrize("wait", ["", "-1", "x", "1e3", "9" * 20, "٣"])
def test_a_wait_that_is_not_a_number_of_seconds_is_refused(client: httpx.Client, shop: Shop, wait: str) -> None:
    answer = client.post("/commands/orders/o1/CreateOrder", params={"wait": wait}, json=CREATE)
    assert (answer.status_code, commands(shop)) == (400, 0)


def encoded(*parts: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "%00",
        "a" * 10_000,
        "%F0%9F%98%80",
        encoded("orders", "o1", "k", 0),
        encoded("orders", "o1", "k", -1, 0),
        encoded("orders", "o1", "k", 99, 0),
        encoded("orders", "o1", "k", 0, 1 << 63),
        encoded("orders", "o1", 5, 0, 0),
        encoded("other", "o1", "k", 0, 0),
        encoded({"a": 1}),
    ],
)
def test_an_id_that_the_server_did_not_give_out_is_not_found(client: httpx.Client, text: str) -> None:
    assert client.get(f"/commands/{text}").status_code == 404


def test_an_id_of_a_command_that_was_not_sent_has_no_result(client: httpx.Client) -> None:
    assert client.get(f"/commands/{encoded('orders', 'o1', 'k', 0, 1 << 40)}").status_code == 202
    assert client.get(f"/commands/{encoded('orders', 'o1', 'k', 0, 0)}?wait=0.01").status_code == 202


def test_a_forged_result_is_refused_and_a_broken_one_ignored(client: httpx.Client, shop: Shop) -> None:
    forged = {"key": "o1", "value": {"command_id": "k"}, "headers": {"command-id": "k"}}
    assert client.post("/topics/orders-results/records", json=forged).status_code == 400
    broken = [b"{", b"[]", b'{"command_id": "k"}', None]
    shop.broker.append("orders-results", [LogRecord(b"o1", v, headers=(("command-id", b"k"),)) for v in broken])
    sent = send(client, "CreateOrder", CREATE, Idempotency_Key="k").json()["id"]
    answer = sent_of(sent)
    found = find_result(shop.broker, sent_of(encoded("orders", "o1", "k", answer.partition, 0)))
    assert found is not None
    assert found.result.status == "accepted"


def test_scopes_of_tokens_apply(shop: Shop) -> None:
    reader, writer = "a-reader-and-no-more", "a-writer-and-no-more"
    tokens = Tokens.load(environ={"POTOK_TOKENS": f"read={reader} write={writer}"})
    with Server(shop.database, port=0, tokens=tokens) as server, httpx.Client(base_url=server.url) as client:
        path, body = "/commands/orders/o1/CreateOrder", {"json": CREATE}
        read, write = ({"Authorization": f"Bearer {token}"} for token in (reader, writer))
        assert client.post(path, **body).status_code == 401
        assert client.post(path, headers=read, **body).status_code == 403
        assert commands(shop) == 0
        sent = client.post(path, headers=write, **body)
        assert sent.status_code == 200
        status = f"/commands/{sent.json()['id']}"
        assert [client.get(status, headers=headers).status_code for headers in (read, write)] == [200, 200]
        assert client.get(status).status_code == 401
        assert client.get("/commands", headers=write).status_code == 403


def test_aggregates_are_listed_and_described_with_the_schemas_of_their_commands(client: httpx.Client) -> None:
    (orders,) = client.get("/commands").json()["aggregates"]
    assert (orders["name"], orders["events"]) == ("orders", "order-events")
    assert [command["name"] for command in orders["commands"]] == ["CreateOrder", "Note", "PayOrder"]
    api = client.get("/openapi.json").json()
    operation = api["paths"]["/commands/orders/{id}/CreateOrder"]["post"]
    assert operation["summary"] == "Create an order."
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    component = schema["$ref"].removeprefix("#/components/schemas/")
    assert api["components"]["schemas"][component]["properties"]["amount"] == {"type": "number"}
    assert api["components"]["schemas"][component]["required"] == ["order_id", "amount"]
    assert {"/commands", "/commands/{id}", "/tables/{name}"} <= api["paths"].keys()
    references = set(_references(api))
    assert references <= {f"#/components/schemas/{name}" for name in api["components"]["schemas"]}


def _references(found: Any) -> list[str]:
    if isinstance(found, list):
        return [each for item in found for each in _references(item)]
    if isinstance(found, dict):
        own = [found["$ref"]] if isinstance(found.get("$ref"), str) else []
        return own + [each for item in found.values() for each in _references(item)]
    return []


def test_results_are_followed_with_one_subscription_that_ends_after_the_last_request(
    server: Server, client: httpx.Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from potok.server.commands import results

    monkeypatch.setattr(results, "LINGER_S", 0.01)
    before = threading.active_count()
    with ThreadPoolExecutor(8) as pool, shop.held:
        asked = [pool.submit(send, client, "CreateOrder", CREATE, f"o{n}") for n in range(8)]
        while commands(shop) < 8:
            threading.Event().wait(0.001)
        assert len(server.app.state.site.results._topics) == 1
        # The clients, the eight threads for finite responses, those that read for push queries, and the tail.
        assert threading.active_count() <= before + 8 + 8 + 4 + 1
        shop.held.release()
        assert {found.result(20).status_code for found in asked} == {200}
        shop.held.acquire()
    while server.app.state.site.results._topics:
        threading.Event().wait(0.001)


def test_a_request_whose_results_are_no_longer_followed_is_answered_with_its_id(
    server: Server, client: httpx.Client, shop: Shop
) -> None:
    with ThreadPoolExecutor(1) as pool, shop.held:
        asked = pool.submit(send, client, "CreateOrder", CREATE)
        while commands(shop) < 1:
            threading.Event().wait(0.001)
        (followed,) = server.app.state.site.results._topics.values()
        followed.subscription.close()
        answer = asked.result(20)
    assert answer.status_code == 202
    assert client.get(answer.headers["Location"], params={"wait": 20}).json()["status"] == "accepted"
