"""The site is built from all pages, without references to other sites, and its links lead somewhere."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from docs.site.build import build
from docs.site.navigation import FROM_THE_ROOT, pages, summary_of
from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """The links, the anchors and the loaded resources of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        if tag == "a":
            self.links.append(found.get("href") or "")
        elif tag in ("img", "script", "iframe"):
            self.loaded.append(found.get("src") or "")
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loaded.append(found.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    assert build(target) == len(pages())
    return target


@cache
def parsed(path: Path) -> Page:
    return Page(path.read_text())


def test_every_page_has_one_place_in_the_navigation() -> None:
    documents = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert [page for page, n in Counter(pages()).items() if n > 1] == []
    assert set(pages()) == documents | set(FROM_THE_ROOT.values())


def test_every_internal_link_leads_to_a_page_and_an_anchor(site: Path) -> None:
    broken = []
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":
            continue
        for link in parsed(path).links:
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:|//", link):
                continue
            there = (path.parent / unquote(target)).resolve() if target else path
            if there.is_dir():
                there /= "index.html"
            is_page = there.suffix == ".html" and there.is_file()
            missing_anchor = bool(anchor) and is_page and unquote(anchor) not in parsed(there).anchors
            if missing_anchor or not there.is_file():
                broken.append(f"{path.relative_to(site)}: {link}")
    assert sorted(set(broken)) == []


def test_nothing_is_loaded_from_another_site(site: Path) -> None:
    for path in sorted(site.rglob("*.html")):
        assert [each for each in parsed(path).loaded if re.match(r"[a-z]+:|//", each)] == [], path


def test_every_page_has_a_markdown_twin_and_a_line_in_llms_txt(site: Path) -> None:
    index = (site / "llms.txt").read_text()
    for page in pages():
        assert (site / page).with_suffix(".html").is_file()
        assert (site / page).is_file()
        assert page == "index.md" or f"]({page}): " in index


def test_every_page_begins_with_a_sentence(site: Path) -> None:
    for page in pages():
        assert 15 < len(summary_of((site / page).read_text())) < 400, page


@pytest.mark.browser
def test_the_site_is_searched_without_a_server_and_fits_on_a_phone(site: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name in ("index", "faust", "reference/api", "coming-from/flink"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    page.keyboard.press("/")
    page.keyboard.type("watermark")
    page.get_by_text("Steps that delay the").first.wait_for()
    assert errors == []
    page.close()
