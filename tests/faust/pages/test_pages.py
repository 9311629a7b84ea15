"""Pages as data: what a function or a class answers, whoever hosts it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import potok.faust as faust
from potok.errors import PotokError
from potok.faust import web
from potok.faust.pages.request import FileField, Request
from potok.faust.web import Response, Route


class Order(faust.Record):
    user_id: str
    amount: float


@pytest.fixture
def app() -> faust.App:
    return faust.App("shop")


def ask(route: Route, method: str = "GET", path: str = "/", **asked: Any) -> Response:
    return asyncio.run(route.respond(method, path, **asked))


def reported(response: Response) -> Any:
    return json.loads(response.body)


def test_a_function_is_given_the_parts_of_the_path_and_the_query(app: faust.App) -> None:
    @app.page("/users/{user_id}/")
    async def user(self: Any, request: Request, user_id: str) -> Any:
        return self.json({"user": user_id, "tags": request.query.getall("tag"), "one": request.query["tag"]})

    answer = ask(app.web_routes()[0], parts={"user_id": "ann"}, query=[("tag", "a"), ("tag", "b")])
    assert (answer.status, reported(answer)) == (200, {"user": "ann", "tags": ["a", "b"], "one": "a"})


def test_a_class_answers_to_the_methods_that_it_has(app: faust.App) -> None:
    @app.page("/orders/", name="orders")
    class Orders(web.View):
        async def get(self, request: Request) -> Any:
            return self.text("all")

        async def post(self, request: Request) -> Any:
            return self.json(await request.json(), status=201, headers={"X-Seen": "yes"})

    (route,) = app.web_routes()
    made = ask(route, "POST", body=b'{"n": 1}')
    assert (route.methods, route.name) == (("GET", "POST"), "orders")
    assert (made.status, reported(made), made.headers["X-Seen"]) == (201, {"n": 1}, "yes")
    assert ask(route).body == b"all"


@pytest.mark.parametrize(
    ("made", "body", "content_type"),
    [
        ({"n": {"a"}}, b'{"n":["a"]}', "application/json"),
        (Order("u", 1.0), b'{"user_id":"u","amount":1.0}', "application/json"),
        ("text", b"text", "text/plain; charset=utf-8"),
        (b"\x00", b"\x00", "application/octet-stream"),
        (web.Web().html("<p>"), b"<p>", "text/html; charset=utf-8"),
        (web.Web().text("a,b", content_type="text/csv"), b"a,b", "text/csv"),
    ],
)
def test_whatever_a_page_returns_is_an_answer(app: faust.App, made: Any, body: bytes, content_type: str) -> None:
    @app.page("/x")
    def page(self: Any, request: Request) -> Any:
        return made

    answer = ask(app.web_routes()[0])
    assert (answer.body, answer.content_type) == (body, content_type)


def test_errors_of_the_web_are_problems_with_a_status(app: faust.App) -> None:
    @app.page("/x")
    async def page(self: Any, request: Request) -> Any:
        raise self.NotFound("no such user", user="ann")

    answer = ask(app.web_routes()[0])
    assert (answer.status, answer.content_type) == (404, "application/problem+json")
    problem = {"type": "urn:potok:page:not-found", "title": "not found", "status": 404, "detail": "no such user"}
    assert reported(answer) == {**problem, "error": "no such user", "user": "ann"}


def test_a_class_may_say_itself_what_an_error_looks_like(app: faust.App) -> None:
    @app.page("/x")
    class Page(web.View):
        async def get(self, request: Request) -> Any:
            raise self.PermissionDenied

        async def on_request_error(self, request: Request, exc: web.WebError) -> Any:
            return self.text(f"no: {exc.status}", status=exc.status)

    answer = ask(app.web_routes()[0])
    assert (answer.status, answer.body) == (403, b"no: 403")


def test_a_body_that_is_not_json_is_the_fault_of_the_client(app: faust.App) -> None:
    @app.page("/x", methods=["POST"])
    async def page(self: Any, request: Request) -> Any:
        return await request.json()

    assert ask(app.web_routes()[0], "POST", body=b"{").status == 400


def test_forms_are_read_with_their_files() -> None:
    plain = Request.of(
        None,
        "POST",
        "/",
        headers=[("Content-Type", "application/x-www-form-urlencoded")],
        body=b"name=J%C3%BCrg&tag=a&tag=b&none=",
    )
    fields = asyncio.run(plain.post())
    assert (fields["name"], fields.getall("tag"), fields["none"]) == ("Jürg", ["a", "b"], "")
    lines = (
        "--cut",
        'Content-Disposition: form-data; name="title"',
        "",
        "a book",
        "--cut",
        'Content-Disposition: form-data; name="file"; filename="a.bin"',
        "Content-Type: application/octet-stream",
        "",
        "\x01\x02",
        "--cut--",
        "",
    )
    head = [("content-type", "multipart/form-data; boundary=cut")]
    parts = asyncio.run(Request.of(None, "POST", "/", headers=head, body="\r\n".join(lines).encode()).post())
    assert parts["title"] == "a book"
    assert parts["file"] == FileField("file", "a.bin", "application/octet-stream", b"\x01\x02")


def test_a_form_of_an_unknown_kind_is_refused() -> None:
    request = Request.of(None, "POST", "/", headers=[("Content-Type", "text/xml")], body=b"<a/>")
    with pytest.raises(web.exceptions.UnsupportedMediaType, match="not text/xml"):
        asyncio.run(request.post())


def test_a_request_knows_its_headers_in_any_case_and_its_cookies() -> None:
    request = Request.of(None, "get", "/a", query=[("q", "x y")], headers=[("Host", "h:1"), ("Cookie", "a=1; b=2")])
    assert (request.headers["HOST"], request.cookies, request.method) == ("h:1", {"a": "1", "b": "2"}, "GET")
    assert request.url == "http://h:1/a?q=x+y"


def test_a_page_takes_and_gives_records(app: faust.App) -> None:
    @app.page("/orders/", methods=["POST"])
    @web.gives_model(Order)
    @web.takes_model(Order)
    async def page(view: Any, request: Request, order: Order) -> Order:
        return order.derive(amount=order.amount * 2)

    (route,) = app.web_routes()
    assert reported(ask(route, "POST", body=b'{"user_id": "u", "amount": 2}')) == {"user_id": "u", "amount": 4.0}
    assert ask(route, "POST", body=b'{"user_id": "u"}').status == 400


def test_a_blueprint_can_be_mounted_under_any_path_and_has_links(app: faust.App, tmp_path: Path) -> None:
    users = web.Blueprint("users")
    users.static("/files", tmp_path)

    @users.route("/{user_id}/", name="detail")
    class User(web.View):
        async def get(self, request: Request, user_id: str) -> Any:
            return self.redirect(self.url_for("users:detail", user_id="a/b"))

    app.web.blueprints.add("/people/", users)
    (route,) = app.web_routes()
    answer = ask(route, parts={"user_id": "ann"})
    assert (route.path, route.name) == ("/people/{user_id}/", "users:detail")
    assert (answer.status, answer.headers["Location"]) == (302, "http://localhost:6066/people/a%2Fb/")
    assert [(item.prefix, item.path) for item in app.web.files] == [("/people/files", tmp_path)]
    assert app.web.url_for("users:detail", "http://shop.example", user_id=1) == "http://shop.example/people/1/"


def test_an_unknown_link_lists_the_existing_pages(app: faust.App) -> None:
    @app.page("/here")
    async def here(self: Any, request: Request) -> Any: ...

    with pytest.raises(PotokError, match=r"(?s)no page \"there\".*here"):
        app.web.path_for("there")


def test_a_page_of_a_table_is_the_page_itself(app: faust.App) -> None:
    table = app.Table("counts", default=int)

    @app.page("/counts/{word}/")
    @app.table_route(table, match_info="word")
    async def count(self: Any, request: Request, word: str) -> Any:
        return word

    assert ask(app.web_routes()[0], parts={"word": "x"}).body == b"x"
    with pytest.raises(PotokError, match="has no key"):
        app.table_route(table)
    with pytest.raises(PotokError, match='belongs to app "shop"'):
        faust.App("other").table_route(table, query_param="word")


def test_files_that_are_not_there_and_paths_that_are_none_are_refused(app: faust.App) -> None:
    with pytest.raises(PotokError, match="no file or directory"):
        app.web.add_static("/x", "nowhere-at-all")
    with pytest.raises(PotokError, match="is not a path"):
        app.page("x")(lambda web, request: None)
