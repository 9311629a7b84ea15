"""Pages behind the server's guard: paths, methods, scopes, files, and what a page that raises says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from potok.server.access.limits import Limits
from potok.server.access.tokens import Tokens
from potok.server.pages import pattern_of
from potok.server.server import Server
from statements.playing import Play


@dataclass
class Said:
    body: bytes
    status: int = 200
    content_type: str = "text/plain"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class FilesAt:
    prefix: str
    path: Path


class Echo:
    """Says what it was asked."""

    def __init__(self, path: str, *methods: str) -> None:
        self.path, self.methods = path, methods or ("GET",)

    async def respond(self, method: str, path: str, **asked: Any) -> Said:
        parts, query = dict(asked["parts"]), asked["query"]
        return Said(f"{method} {path} {parts} {query} {asked['body']!r}".encode(), headers={"X-Page": self.path})


class Raising(Echo):
    async def respond(self, method: str, path: str, **asked: Any) -> Said:
        raise RuntimeError("secret")


@contextmanager
def served(play: Play, *pages: Any, **options: Any) -> Iterator[httpx.Client]:
    with (
        Server(play.database, port=0, pages=pages, **options) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        yield client


def test_a_page_gets_its_parts_query_and_body_as_they_were_sent(play: Play) -> None:
    with served(play, Echo("/users/{name}/", "GET", "POST")) as client:
        assert client.get("/users/a%2Fb%20c/?x=1&x=2").text == (
            "GET /users/a/b c/ {'name': 'a/b c'} [('x', '1'), ('x', '2')] b''"
        )
        posted = client.post("/users/ann/", content=b"hello")
        assert (posted.text, posted.headers["x-page"]) == (
            "POST /users/ann/ {'name': 'ann'} [] b'hello'",
            "/users/{name}/",
        )


class Broken(Echo):
    """Answers what cannot be sent."""

    def __init__(self, answer: Said) -> None:
        super().__init__("/broken/")
        self._answer = answer

    async def respond(self, method: str, path: str, **asked: Any) -> Said:
        return self._answer


@pytest.mark.parametrize(
    "answer",
    [
        Said(b"", headers={"X-A": "a\r\nSet-Cookie: b=c"}),
        Said(b"", headers={"X A": "a"}),
        Said(b"", headers={"X-A": "\u20ac"}),
        Said(b"", status=42),
        Said(b"", status=1_000),
        Said(b"", content_type="text/plain\nX: y"),
    ],
)
def test_a_page_whose_answer_cannot_be_sent_has_failed(play: Play, answer: Said) -> None:
    with served(play, Broken(answer)) as client:
        found = client.get("/broken/")
        assert (found.status_code, found.headers["content-type"]) == (500, "application/problem+json")
        assert "set-cookie" not in found.headers
        assert client.get("/info").status_code == 200


def test_a_pattern_says_what_a_part_may_be(play: Play) -> None:
    with served(play, Echo("/n/{number:[0-9]{2}}"), Echo("/n/{word}")) as client:
        assert "{'number': '42'}" in client.get("/n/42").text
        assert "{'word': '4x'}" in client.get("/n/4x").text
        assert client.get("/n/4/x").status_code == 404


def test_a_path_is_taken_as_it_is_written() -> None:
    assert pattern_of("/a.b/{x}/ü") == r"/a\.b/(?P<x>[^/]+)/%C3%BC"


def test_a_method_that_a_page_does_not_take_is_refused_and_head_is_a_get_without_a_body(play: Play) -> None:
    with served(play, Echo("/x")) as client:
        refused = client.post("/x")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
        assert refused.headers["content-type"] == "application/problem+json"
        assert (client.head("/x").status_code, client.head("/x").text) == (200, "")


def test_two_pages_of_one_path_share_its_methods(play: Play) -> None:
    with served(play, Echo("/x", "GET"), Echo("/x", "PUT")) as client:
        assert [client.request(method, "/x").status_code for method in ("GET", "PUT", "DELETE")] == [200, 200, 405]


def test_a_missing_slash_is_put_right(play: Play) -> None:
    with served(play, Echo("/x/{y}/")) as client:
        assert client.get("/x/a", follow_redirects=True).text.startswith("GET /x/a/ {'y': 'a'}")


def test_a_page_error_is_logged_and_not_sent_to_the_client(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    with served(play, Raising("/x")) as client:
        answer = client.get("/x")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["detail"] == "the page /x failed"
    assert "secret" not in answer.text
    assert "RuntimeError: secret" in caplog.text


def test_a_page_that_never_answers_is_cut_off(play: Play) -> None:
    ended: list[str] = []

    class Endless(Echo):
        async def respond(self, method: str, path: str, **asked: Any) -> Said:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            raise AssertionError

    with served(play, Endless("/x"), limits=Limits(seconds=0.05)) as client:
        assert client.get("/x").status_code == 503
    assert ended == ["cancelled"]


def test_a_waiting_page_does_not_block_others(play: Play) -> None:
    entered = threading.Event()

    class Waiting(Echo):
        async def respond(self, method: str, path: str, **asked: Any) -> Said:
            entered.set()
            await asyncio.to_thread(leave.wait, 30)
            return Said(b"done")

    leave = threading.Event()
    with served(play, Waiting("/x"), Echo("/y")) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: httpx.get(f"{client.base_url}/x", timeout=60).text)
        assert entered.wait(30)
        assert [client.get(path).status_code for path in ("/healthcheck", "/tables", "/y")] == [200, 200, 200]
        leave.set()
        assert waiting.result() == "done"


def test_pages_need_the_scopes_of_what_they_do(play: Play) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": "read=reader-reader-reader write=writer-writer-writer"})
    with served(play, Echo("/x", "GET", "POST"), tokens=tokens) as client:
        reader, writer = ({"Authorization": f"Bearer {name}-{name}-{name}"} for name in ("reader", "writer"))
        assert client.get("/x").status_code == 401
        assert [client.request(method, "/x", headers=reader).status_code for method in ("GET", "POST")] == [200, 403]
        assert [client.request(method, "/x", headers=writer).status_code for method in ("GET", "POST")] == [403, 200]


def test_what_is_open_to_all_stays_the_servers(play: Play) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": "read=reader-reader-reader"})
    with served(play, Echo("/{anything}"), tokens=tokens) as client:
        assert "isHealthy" in client.get("/healthcheck").text
        assert client.get("/other").status_code == 401


def test_a_page_comes_before_a_path_of_the_server(play: Play) -> None:
    with served(play, Echo("/tables")) as client:
        assert client.get("/tables").text.startswith("GET /tables")


def test_a_body_that_is_too_large_never_reaches_a_page(play: Play) -> None:
    with served(play, Echo("/x", "POST"), limits=Limits(body_bytes=10)) as client:
        assert client.post("/x", content=b"x" * 11).status_code == 413


def test_only_files_of_the_served_directory_are_served(play: Play, tmp_path: Path) -> None:
    directory = tmp_path / "site"
    directory.mkdir()
    (directory / "index.html").write_text("<p>hello</p>")
    (tmp_path / "secret.txt").write_text("secret")
    files = [FilesAt("/site", directory), FilesAt("/one", tmp_path / "secret.txt")]
    with served(play, files=files) as client:
        assert client.get("/site/").text == "<p>hello</p>"
        assert client.get("/site/index.html").headers["content-type"].startswith("text/html")
        assert client.get("/site/..%2Fsecret.txt").status_code == 404
        assert client.get("/site/none.txt").json()["status"] == 404
        assert client.get("/one").text == "secret"


def test_files_need_the_scope_to_read(play: Play, tmp_path: Path) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": "write=writer-writer-writer"})
    (tmp_path / "a.txt").write_text("a")
    with served(play, files=[FilesAt("/site", tmp_path)], tokens=tokens) as client:
        assert client.get("/site/a.txt").status_code == 401
        assert client.get("/site/a.txt", headers={"Authorization": "Bearer writer-writer-writer"}).status_code == 403
