"""Reads over HTTP that wait for the position of a write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.server.access.limits import Limits
from potok.server.access.tokens import Tokens
from potok.server.positions import waits
from potok.server.server import Server
from potok.settings import Settings
from potok.state.entry import metadata_key_of
from potok.statements.queries.query_tables import QueryTables
from server.conftest import SHOP
from statements.playing import Play

CHAIN = (
    SHOP
    + """
CREATE STREAM large AS SELECT * FROM orders WHERE amount > 100;
CREATE TABLE large_totals AS SELECT user_id, COUNT(*) AS n FROM large GROUP BY user_id;
"""
)

ORDER = {"key": "o1", "value": {"USER_ID": "ann", "AMOUNT": 150.0}}


@pytest.fixture
def chain(play: Play) -> Play:
    play.do(CHAIN)
    return play


@pytest.fixture
def server(chain: Play) -> Iterator[Server]:
    with Server(chain.database, port=0) as found:
        yield found


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as found:
        yield found


def write(client: httpx.Client, **headers: str) -> str:
    answer = client.post("/topics/orders/records", json=ORDER, headers=headers)
    assert answer.status_code in (200, 201)
    return answer.headers["Potok-Position"]


def until_waiting(server: Server, count: int = 1) -> None:
    """Return when this many reads wait."""
    found = server.app.state.site.waits
    while found.count < count:
        threading.Event().wait(0.001)


def asked(position: str, seconds: float = 20) -> dict[str, str]:
    return {"Potok-Wait-For": position, "Prefer": f"wait={seconds}"}


@pytest.mark.parametrize(
    ("path", "statement"),
    [
        ("/tables/TOTALS/ann", ""),
        ("/tables/TOTALS", ""),
        ("/tables/LARGE_TOTALS/ann", ""),
        ("/sql", "SELECT * FROM totals;"),
        ("/sql", "SELECT * FROM large_totals WHERE user_id = 'ann';"),
        ("/sql", "SELECT * FROM large;"),
        ("/query", "SELECT * FROM totals;"),
        ("/query-stream", "SELECT * FROM large_totals;"),
    ],
)
def test_a_read_waits_until_the_write_is_included(
    server: Server, client: httpx.Client, chain: Play, pool: ThreadPoolExecutor, path: str, statement: str
) -> None:
    headers = asked(write(client))

    def read() -> httpx.Response:
        if statement:
            return client.post(path, json={"sql": statement, "ksql": statement}, headers=headers)
        return client.get(path, headers=headers)

    reading: Future[httpx.Response] = pool.submit(read)
    until_waiting(server)
    chain.run()
    chain.run()
    assert reading.result(20).status_code == 200
    assert "ann" in reading.result().text


def test_the_position_of_an_insert_is_in_the_response(client: httpx.Client) -> None:
    insert = "INSERT INTO orders (id, user_id, amount) VALUES ('%s', 'ann', 1);"
    answer = client.post("/sql", json={"sql": insert % "a" + insert % "a"})
    inserted = [result["position"] for result in answer.json()["results"]]
    assert answer.headers["Potok-Position"] == inserted[1]
    assert client.post("/ksql", json={"ksql": insert % "a"}).headers["Potok-Position"] > inserted[1]
    assert "Potok-Position" not in client.post("/sql", json={"sql": "SHOW TABLES;"}).headers
    many = client.post("/sql", json={"sql": insert % "a" * 1_500})
    assert many.headers["Potok-Position"].count(":") == 2


def test_a_repeated_request_answers_the_position_of_the_first(client: httpx.Client) -> None:
    first = write(client, **{"Idempotency-Key": "k"})
    write(client)
    assert write(client, **{"Idempotency-Key": "k"}) == first


def test_a_read_that_waits_in_vain_says_how_far_the_table_is(client: httpx.Client, chain: Play) -> None:
    before = write(client)
    chain.run()
    position = write(client)
    answer = client.get("/tables/TOTALS/ann", headers=asked(position, 0.05))
    assert answer.status_code == 504
    body = answer.json()
    assert (body["wanted"], body["reached"]) == (position, before)
    assert body["query"].startswith("CTAS_TOTALS")
    assert body["reached"] in body["detail"]


def test_a_position_that_no_table_can_reach_ends_with_the_time_of_the_read(client: httpx.Client, chain: Play) -> None:
    chain.run()
    answer = client.get("/tables/TOTALS", headers=asked("orders:0:999999999999999999,orders:77:5", 0.05))
    assert (answer.status_code, answer.json()["reached"]) == (504, "orders:0:0,orders:77:0")
    assert client.get("/tables/TOTALS", headers=asked("elsewhere:0:999", 0.05)).status_code == 200


@pytest.mark.parametrize("text", ["", "nonsense", "orders:0", "orders:-1:3", "o:0:" + "1" * 40, "o:0:1" + ",x" * 2_000])
def test_a_bad_position_is_refused(client: httpx.Client, text: str) -> None:
    answer = client.get("/tables/TOTALS/ann", headers={"Potok-Wait-For": text})
    assert (answer.status_code, "Potok-Position" in answer.json()["hint"]) == (400, True)


@pytest.mark.parametrize("prefer", ["wait=0", "respond-async, wait=0.01", 'wait="0"', "WAIT=0;x"])
def test_how_long_to_wait_follows_the_header_prefer(client: httpx.Client, prefer: str) -> None:
    headers = {"Potok-Wait-For": "orders:0:5", "Prefer": prefer}
    assert client.get("/tables/TOTALS/ann", headers=headers).status_code == 504


def test_a_read_waits_no_longer_than_the_server_allows(chain: Play) -> None:
    with (
        Server(chain.database, port=0, limits=Limits(seconds=0.05)) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        headers = {"Potok-Wait-For": "orders:0:5", "Prefer": "wait=9999"}
        assert client.get("/tables/TOTALS/ann", headers=headers).status_code == 504


def test_a_pull_query_that_cannot_be_planned_does_not_wait(client: httpx.Client) -> None:
    answer = client.post("/sql", json={"sql": "SELECT * FROM nowhere;"}, headers=asked("orders:0:5"))
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:potok:unknown-name")


def test_many_reads_wait_in_one_thread(
    server: Server, client: httpx.Client, chain: Play, pool: ThreadPoolExecutor
) -> None:
    position = write(client)
    before = threading.active_count()
    reading = [pool.submit(client.get, "/tables/TOTALS/ann", headers=asked(position)) for _ in range(8)]
    until_waiting(server, 8)
    watching = [thread.name for thread in threading.enumerate() if thread.name == "potok-positions"]
    assert len(watching) == 1
    assert threading.active_count() <= before + 8 + 1
    chain.run()
    assert {found.result(20).status_code for found in reading} == {200}
    while server.app.state.site.waits.count:
        threading.Event().wait(0.001)


def test_more_reads_than_the_server_holds_are_refused(
    server: Server, client: httpx.Client, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "MOST", 1)
    position = write(client)
    reading = pool.submit(client.get, "/tables/TOTALS/ann", headers=asked(position, 0.5))
    until_waiting(server)
    assert client.get("/tables/TOTALS/ann", headers=asked(position)).status_code == 503
    assert reading.result(20).status_code == 504


def test_a_damaged_ledger_fails_the_reads_that_wait_for_it_and_no_others(
    server: Server, client: httpx.Client, chain: Play, pool: ThreadPoolExecutor
) -> None:
    position = write(client)
    chain.run()
    position = write(client)
    (query,) = [name for name in chain.database.catalog_state().queries if "LARGE_TOTALS" in name]
    key = metadata_key_of(query, "ledger")
    data = chain.broker.get_metadata(key)
    chain.broker.set_metadata({key: b"{"})
    good = pool.submit(client.get, "/tables/TOTALS/ann", headers=asked(position, 1))
    until_waiting(server)
    bad = client.get("/tables/LARGE_TOTALS/ann", headers=asked(position))
    assert (bad.status_code, "ledger" in bad.json()["detail"]) == (500, True)
    assert good.result(20).status_code == 504
    chain.broker.set_metadata({key: data})


def test_reads_that_wait_end_with_the_server(chain: Play, pool: ThreadPoolExecutor) -> None:
    with Server(chain.database, port=0) as server:
        client = httpx.Client(base_url=server.url, timeout=30)
        reading = pool.submit(client.get, "/tables/TOTALS/ann", headers=asked("orders:0:5", 30))
        until_waiting(server)
    with pytest.raises(httpx.HTTPError):
        reading.result(20).raise_for_status()
    client.close()


def test_a_token_that_may_not_read_does_not_wait(chain: Play) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": "write=a-writer-and-no-more"})
    with (
        Server(chain.database, port=0, tokens=tokens) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        headers = {**asked("orders:0:5"), "Authorization": "Bearer a-writer-and-no-more"}
        assert client.get("/tables/TOTALS/ann", headers=headers).status_code == 403


def test_tables_of_a_program_are_waited_for(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    builder = StreamsBuilder("shop")
    builder.stream("orders").group_by_key().count(name="counts")
    with (
        InProcess(builder, directory=tmp_path) as driver,
        QueryTables(driver.broker, Settings(), ["shop"]) as database,
        Server(database, port=0) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        position = write(client)
        reading = pool.submit(client.get, "/tables/counts/o1", headers=asked(position))
        until_waiting(server)
        driver.run(more_to_come=True)
        assert reading.result(20).json() == {"KEY": "o1", "VALUE": 1}
