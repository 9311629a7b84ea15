"""Serving programs from Python."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

import potok
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.server.server import OpenToAll


def counting() -> StreamsBuilder:
    builder = StreamsBuilder("counting")
    builder.stream("clicks").group_by_key().count(name="counts")
    return builder


def test_tables_and_files_are_served_until_the_block_ends(tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<h1>counts</h1>")
    (page / "more.txt").write_text("more")
    with InProcess(counting(), directory=tmp_path / "data") as driver:
        driver.send("clicks", 1, "ann")
        driver.run()
        with potok.serve("counting", broker=tmp_path / "data", port=0, files={"/": page}) as server:
            url = server.url
            assert httpx.get(f"{url}/tables/counts/ann").json() == {"KEY": "ann", "VALUE": 1}
            assert httpx.get(url).text == "<h1>counts</h1>"
            assert httpx.get(f"{url}/more.txt").text == "more"
            assert httpx.get(f"{url}/../data/log").status_code == 404
            assert httpx.get(f"{url}/%2e%2e/data/log/meta/data.mdb").status_code == 404
            assert httpx.get(f"{url}/nothing").status_code == 404
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/tables")


def test_files_need_a_token_where_tables_do(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("page")
    tokens = tmp_path / "tokens.toml"
    tokens.write_text('[[token]]\nname = "reader"\nscopes = ["read"]\ntoken = "a-reader-and-no-more"\n')
    with potok.serve("counting", broker=tmp_path / "data", port=0, tokens=tokens, files={"/": tmp_path}) as server:
        assert httpx.get(server.url).status_code == 401
        assert httpx.get(server.url, headers={"Authorization": "Bearer a-reader-and-no-more"}).text == "page"


def test_an_address_of_the_network_needs_tokens(tmp_path: Path) -> None:
    with pytest.raises(OpenToAll), potok.serve("counting", broker=tmp_path, host="0.0.0.0", port=0):
        pass
