from __future__ import annotations

from typing import Any

import httpx
import pytest

from potok.records.log_record import LogRecord
from potok.server.access.tokens import Tokens
from potok.server.server import Server
from statements.playing import Play

QUERY = "/queries/CTAS_TOTALS_1/dead-letters"
BAD = b'{"USER_ID": <b>'


@pytest.fixture
def spoilt(shop: Play) -> Play:
    """Three orders that cannot be read, in the dead letters of both queries."""
    for number in range(3):
        shop.broker.append("orders", [LogRecord(b"o%d" % number, BAD, 5, (("h", b"1"),))], partition=0)
    shop.run()
    return shop


@pytest.fixture
def client(spoilt: Play, client: httpx.Client) -> httpx.Client:
    return client


def test_dead_letters_are_grouped_by_query_step_and_reason(client: httpx.Client) -> None:
    found = client.get("/dead-letters").json()
    assert [(one["query"], one["open"]) for one in found["queries"]] == [("CTAS_HOURLY_2", 3), ("CTAS_TOTALS_1", 3)]
    group = next(group for group in found["groups"] if group["query"] == "CTAS_TOTALS_1")
    assert (group["step"], group["reason"], group["topic"], group["count"]) == ("orders", "decode", "orders", 3)
    assert "not valid JSON" in group["error"]


def test_one_dead_letter_has_bytes_headers_position_and_error(client: httpx.Client) -> None:
    found = client.get(QUERY, params={"position": "0:1"}).json()
    (letter,) = found["dead_letters"]
    assert (letter["position"], letter["value"], letter["headers"]) == ("0:1", BAD.decode(), {"h": "1"})
    assert (letter["topic"], letter["partition"], letter["offset"], found["open"]) == ("orders", 0, 1, 3)


@pytest.mark.parametrize(
    ("params", "count"),
    [
        ({"reason": "decode"}, 3),
        ({"reason": "late"}, 0),
        ({"step": "orders"}, 3),
        ({"topic": "x"}, 0),
        ({"limit": 2}, 2),
    ],
)
def test_dead_letters_are_selected(client: httpx.Client, params: dict[str, Any], count: int) -> None:
    assert len(client.get(QUERY, params=params).json()["dead_letters"]) == count


def test_one_or_a_selection_is_replayed_with_the_result(client: httpx.Client, spoilt: Play) -> None:
    counted = client.post(f"{QUERY}/replay", json={"positions": ["0:0"], "dry_run": True}).json()
    assert (counted["done"], counted["records"]) == (False, 1)
    done = client.post(f"{QUERY}/replay", json={"positions": ["0:0"]}).json()
    assert (done["done"], done["dead_letters"], done["partitions"]) == (
        True, 1, [{"topic": "orders", "partition": 0, "records": 1}],
    )  # fmt: skip
    assert spoilt.broker.end_offsets("orders")[0] == 4
    assert client.get(QUERY).json()["open"] == 2
    assert client.post(f"{QUERY}/replay", json={"reason": "decode"}).json()["records"] == 2
    assert client.post(f"{QUERY}/replay").json()["records"] == 0


def test_dead_letters_are_purged(client: httpx.Client) -> None:
    assert client.post(f"{QUERY}/purge", json={"positions": ["0:2"]}).json()["dead_letters"] == 1
    assert client.get(QUERY).json()["open"] == 2


@pytest.mark.parametrize(
    "body",
    [
        {"positions": []},
        {"positions": ["x"]},
        {"positions": "0:1"},
        {"reason": "bad"},
        {"resaon": "decode"},
        [1],
        {"since": "noon"},
    ],
)
def test_a_selection_that_cannot_be_read_replays_nothing(client: httpx.Client, spoilt: Play, body: Any) -> None:
    answer = client.post(f"{QUERY}/replay", json=body)
    assert answer.status_code == 400 and answer.json()["hint"]
    assert spoilt.broker.end_offsets("orders")[0] == 3


def test_an_empty_list_of_positions_purges_nothing(client: httpx.Client) -> None:
    answer = client.post(f"{QUERY}/purge", json={"positions": []})
    assert (answer.status_code, answer.json()["hint"]) == (400, "leave it out to select all")
    assert client.get(QUERY).json()["open"] == 3
    assert client.post(f"{QUERY}/purge", json={"positions": None}).json()["dead_letters"] == 3


def test_replay_and_purge_need_the_scope_to_write(spoilt: Play) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": "read=a-token-to-read-with"})
    with Server(spoilt.database, port=0, tokens=tokens) as server:
        headers = {"Authorization": "Bearer a-token-to-read-with"}
        with httpx.Client(base_url=server.url, headers=headers) as client:
            assert client.get(QUERY).status_code == 200
            for action in ("replay", "purge"):
                assert client.post(f"{QUERY}/{action}").status_code == 403
