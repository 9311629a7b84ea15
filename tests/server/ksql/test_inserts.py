from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from potok.server.access.limits import Limits
from potok.server.server import Server
from statements.playing import Play


def inserts(client: httpx.Client, *lines: Any, accept: str = "") -> httpx.Response:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return client.post("/inserts-stream", content="\n".join(texts), headers={"Accept": accept} if accept else {})


def test_each_row_is_acknowledged_when_it_is_durable(client: httpx.Client, shop: Play) -> None:
    answer = inserts(client, {"target": "orders"}, {"id": "a", "amount": 1.5}, {"ID": "b", "USER_ID": "u"})
    assert list(map(json.loads, answer.text.splitlines())) == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert sorted(shop.rows("SELECT * FROM orders;")) == [("a", None, 1.5), ("b", "u", None)]


def test_acks_can_be_an_array(client: httpx.Client) -> None:
    answer = inserts(client, {"target": "ORDERS"}, {"id": "a"}, accept="application/json")
    assert answer.json() == [{"status": "ok", "seq": 0}]
    assert inserts(client, {"target": "ORDERS"}, accept="application/json").json() == []


def test_an_invalid_row_is_reported_and_the_others_are_inserted(client: httpx.Client, shop: Play) -> None:
    answer = inserts(client, {"target": "orders"}, {"id": "a"}, {"id": "b", "nope": 1}, "no json", "[1]", {"id": "c"})
    acks = list(map(json.loads, answer.text.splitlines()))
    assert [(ack["seq"], ack["status"]) for ack in acks] == [
        (0, "ok"),
        (1, "error"),
        (2, "error"),
        (3, "error"),
        (4, "ok"),
    ]
    assert "nope" in acks[1]["message"]
    assert [row[0] for row in sorted(shop.rows("SELECT id FROM orders;"))] == ["a", "c"]


def test_rows_that_come_in_pieces_are_put_together(client: httpx.Client, shop: Play) -> None:
    text = b'{"target":"orders"}\n{"id":"a"}\n{"id":"b"}\n'
    answer = client.post("/inserts-stream", content=(text[at : at + 3] for at in range(0, len(text), 3)))
    assert [json.loads(line)["seq"] for line in answer.text.splitlines()] == [0, 1]
    assert len(shop.rows("SELECT id FROM orders;")) == 2


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([""], 400),
        (["{"], 400),
        ([{"to": "orders"}], 400),
        ([{"target": "nobody"}], 400),
        ([{"target": "totals"}], 400),
    ],
)
def test_a_target_that_cannot_be_written_is_an_error(client: httpx.Client, lines: list[Any], status: int) -> None:
    assert inserts(client, *lines).status_code == status


@pytest.fixture
def narrow(shop: Play) -> Iterator[httpx.Client]:
    with (
        Server(shop.database, port=0, limits=Limits(body_bytes=200)) as server,
        httpx.Client(base_url=server.url, timeout=30) as found,
    ):
        yield found


def test_a_stream_may_be_longer_than_a_body_but_not_one_of_its_lines(narrow: httpx.Client) -> None:
    rows = [{"id": f"order-{number}"} for number in range(100)]
    assert len(inserts(narrow, {"target": "orders"}, *rows).text.splitlines()) == 100
    answer = inserts(narrow, {"target": "orders"}, {"id": "x" * 300})
    assert answer.status_code == 413 or json.loads(answer.text.splitlines()[-1])["error_code"] == 41300
