from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from potok.log.open import open_broker
from potok.server.access.tokens import Tokens
from potok.server.console.pages import STATIC
from potok.server.serve import ServedFiles
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.queries.query_tables import QueryTables

FIRST_VIEW_BYTES = 300_000


@contextmanager
def served(directory: Path, **given: object) -> Iterator[httpx.Client]:
    with (
        QueryTables(open_broker(directory), Settings(), []) as database,
        Server(database, port=0, **given) as server,  # type: ignore[arg-type]
        httpx.Client(base_url=server.url) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("log")) as found:
        yield found


def imported(file: Path) -> list[Path]:
    found = re.findall(r'(?:from|import\() ?"(\.[^"]+)"', file.read_text())
    return [(file.parent / name).resolve() for name in found]


def modules() -> list[Path]:
    return sorted(STATIC.rglob("*.js"))


def test_the_page_is_served_with_all_that_it_names(client: httpx.Client) -> None:
    page = client.get("/console/")

    assert page.headers["content-type"].startswith("text/html")
    named = re.findall(r'(?:href|src)="(static/[^"#]+)', page.text)
    assert len(named) > 4
    for path in named:
        assert client.get(f"/console/{path}").status_code == 200, path


@pytest.mark.parametrize("path", ["/", "/console"])
def test_other_addresses_lead_to_the_page(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["location"]) == (307, "/console/")


def test_the_page_loads_nothing_from_other_hosts() -> None:
    for file in filter(Path.is_file, STATIC.rglob("*")):
        for url in re.findall(r"https?://[^\s\"'`)]+", file.read_text()):
            assert url in ("http://www.w3.org/2000/svg",), f"{file.name} names {url}"


def test_every_module_that_a_module_imports_is_there() -> None:
    for file in modules():
        for other in imported(file):
            assert other.is_file(), f"{file.name} imports {other.name}"


def test_modules_and_style_sheets_are_small() -> None:
    for file in [*modules(), *STATIC.rglob("*.css")]:
        assert len(file.read_text().splitlines()) <= 250, file.name


def test_no_module_makes_markup_or_code_out_of_text() -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(.style"
    for file in modules():
        assert re.findall(forbidden, file.read_text()) == [], file.name


def test_the_first_view_is_small() -> None:
    needed, waiting = set[Path](), [STATIC / "main.js", STATIC / "views" / "overview.js"]
    while waiting:
        file = waiting.pop()
        if file not in needed:
            needed.add(file)
            waiting += [other for other in imported(file) if "views" not in other.parts]
    rest = [STATIC / name for name in ("index.html", "theme.js", "favicon.svg")]
    size = sum(file.stat().st_size for file in [*needed, *rest, *STATIC.glob("*.css")])
    assert size < FIRST_VIEW_BYTES


@pytest.mark.parametrize("path", ["/console/", "/console/static/main.js", "/console/static/views/overview.js"])
def test_every_file_forbids_foreign_code(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert answer.status_code == 200
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/console/static/../pages.py", "/console/static/%2e%2e/pages.py"])
def test_nothing_outside_the_static_files_is_served(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_the_page_answers_to_the_address_of_this_machine_alone(client: httpx.Client) -> None:
    for path in ("/console/", "/overview", "/console/static/main.js"):
        assert client.get(path, headers={"Host": "evil.example"}).status_code == 403
    assert client.get("/overview", headers={"Host": "localhost:1234"}).status_code == 200


def test_with_tokens_the_files_are_open_and_the_figures_are_not(tmp_path: Path) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": "read=a-token-to-read-with"})
    with served(tmp_path, tokens=tokens) as client:
        for path in ("/", "/console/", "/console/static/main.js"):
            assert client.get(path).status_code in (200, 307), path
        assert client.get("/overview").status_code == 401
        answer = client.get("/overview", headers={"Authorization": "Bearer a-token-to-read-with"})
        assert answer.json()["scopes"] == ["read"]


def test_a_program_keeps_its_own_page_at_the_root(tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("its own")
    with served(tmp_path / "log", files=[ServedFiles("/", page)]) as client:
        assert client.get("/").text == "its own"
        assert client.get("/console/").status_code == 200


def test_the_console_can_be_left_out(tmp_path: Path) -> None:
    with served(tmp_path, console=False) as client:
        assert client.get("/console/").status_code == 404
        assert client.get("/overview").status_code == 200
