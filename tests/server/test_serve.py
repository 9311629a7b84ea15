"""`potok.serve`: a log over HTTP from a Python program."""

from __future__ import annotations

from pathlib import Path

import httpx

import potok
from potok.testing import TestDriver


def test_sql_and_records_are_served(tmp_path: Path) -> None:
    with potok.serve(tmp_path, port=0, run_queries=False) as server, httpx.Client(base_url=server.url) as client:
        sql = "CREATE STREAM orders (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'orders', PARTITIONS = 1);"
        assert client.post("/sql", json={"sql": sql}).json()["results"][0]["message"] == "Stream created"
        assert client.post("/topics/orders/records", json={"key": "a", "value": {"n": 1}}).json()["records"] == 1
        assert client.post("/sql", json={"sql": "SELECT * FROM orders;"}).json()["results"][0]["rows"] == [["a", 1]]


def test_only_the_tables_of_the_given_queries_are_served(tmp_path: Path) -> None:
    builder = potok.StreamsBuilder("shop")
    builder.stream("orders").group_by_key().count(name="counts")
    with TestDriver(builder, directory=tmp_path) as driver:
        driver.send("orders", {}, "ann")
        driver.run()
        with potok.serve(driver.broker, queries=["shop"], port=0) as server:
            assert httpx.get(f"{server.url}/tables/counts/ann").json() == {"KEY": "ann", "VALUE": 1}
            assert httpx.get(f"{server.url}/tables/other/ann").status_code == 404


def test_the_tokens_of_a_file_are_required(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[[token]]\nname = "ann"\nscopes = ["read"]\nsha256 = "{"0" * 64}"\n')
    with potok.serve(tmp_path / "data", port=0, run_queries=False, tokens=tokens) as server:
        assert httpx.get(f"{server.url}/tables").status_code == 401


def test_files_are_served_behind_all_other_paths(tmp_path: Path) -> None:
    page, data = tmp_path / "page", tmp_path / "data"
    page.mkdir()
    (page / "index.html").write_text("<h1>counts</h1>")
    (page / "tables").write_text("not this")
    with potok.serve(data, port=0, run_queries=False, files={"/": page}) as server:
        assert httpx.get(server.url).text == "<h1>counts</h1>"
        assert httpx.get(f"{server.url}/tables").json() == {"tables": []}
        for path in ("/nothing", "/%2e%2e/data/log/meta/data.mdb", "/..%2fdata/log/meta/data.mdb"):
            assert httpx.get(server.url + path).status_code == 404


def test_files_need_a_token_where_tables_do(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("page")
    tokens = tmp_path / "tokens.toml"
    tokens.write_text('[[token]]\nname = "reader"\nscopes = ["read"]\ntoken = "a-reader-and-no-more"\n')
    files = {"/": tmp_path}
    with potok.serve(tmp_path / "data", port=0, run_queries=False, tokens=tokens, files=files) as server:
        assert httpx.get(server.url).status_code == 401
        assert httpx.get(server.url, headers={"Authorization": "Bearer a-reader-and-no-more"}).text == "page"
