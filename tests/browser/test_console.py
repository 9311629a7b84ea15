"""Every view of the console: with data, empty, with an error; many rows; hostile text; a phone; a keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from browser.served_log import HOSTILE, ROWS, TOPICS, TOTALS, ServedLog, empty_log, full_log
from potok.server.access.tokens import Tokens
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.queries.query_tables import QueryTables

pytestmark = pytest.mark.browser

VIEWS = {
    "": "Overview",
    "topics": "Topics",
    "topics/shop-orders": "shop-orders",
    "tables": "Tables",
    "tables/prices/prices": "prices",
    "sql": "SQL",
    "dead-letters": "Dead letters",
    "sagas": "Sagas",
    "sources": "Sources and sinks",
    "cluster": "Cluster",
    f"queries/{TOTALS}": TOTALS,
}

EMPTY = {
    "": "No query has run here yet",
    "topics": "No topics yet",
    "tables": "No tables yet",
    "sql": "Results appear here",
    "dead-letters": "No open dead letters",
    "sagas": "No query has a saga",
    "sagas?tab=aggregates": "No query has an aggregate",
    "sagas?tab=patterns": "No query has a pattern",
    "sources": "Nothing outside the log yet",
    "cluster": "No consumer groups or queues",
}

ERRORS = {
    "": "**/overview/live",
    "topics": "**/topics?*",
    "topics/shop-orders": "**/topics/shop-orders",
    "tables": "**/query-tables",
    "tables/prices/prices": "**/queries/prices/tables",
    "dead-letters": "**/dead-letters",
    "sagas": "**/sagas?*",
    "sources": "**/gateway",
    "cluster": "**/cluster",
    f"queries/{TOTALS}": "**/topology",
}


LOADING = "p.empty:text('Loading')"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    with full_log(tmp_path_factory.mktemp("full")) as found:
        yield found


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    with empty_log(tmp_path_factory.mktemp("empty")) as found:
        yield found


def visit(page: Page, log: ServedLog, view: str) -> None:
    page.goto(f"{log.url}/console/#/{view}")
    page.reload()


def test_every_view_shows_what_is_there_and_hostile_text_stays_text(page: Page, full: ServedLog) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for view, title in VIEWS.items():
        visit(page, full, view)
        expect(page.locator("h1")).to_contain_text(title)
        expect(page.locator(LOADING)).to_have_count(0)
        assert page.locator(".banner.wrong").count() == 0, view
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390, view
        assert page.evaluate("() => window.hacked") is None, view
    assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize("view", EMPTY)
def test_an_empty_view_says_what_fills_it(page: Page, empty: ServedLog, view: str) -> None:
    visit(page, empty, view)
    expect(page.locator(".nothing").locator("visible=true").first).to_contain_text(EMPTY[view])


@pytest.mark.parametrize("view", ERRORS)
def test_a_view_that_cannot_be_read_says_why(page: Page, full: ServedLog, view: str) -> None:
    problem = '{"detail": "the disk is full", "hint": "free some"}'

    def refuse(route: Route) -> None:
        route.fulfill(status=422, content_type="application/problem+json", body=problem)

    page.route(ERRORS[view], refuse)
    visit(page, full, view)
    expect(page.locator("[role=alert]").locator("visible=true").first).to_contain_text("The disk is full")


def test_many_topics_and_rows_are_scrolled_and_few_are_in_the_document(page: Page, full: ServedLog) -> None:
    for view, count, last in (("topics", TOPICS, "topic-0999"), ("tables/prices/prices", ROWS, "key-09999")):
        visit(page, full, view)
        grid = page.locator("[role=grid]").first
        page.wait_for_function(f"() => Number(document.querySelector('[role=grid]')?.ariaRowCount) > {count}")
        assert page.locator(".grid-row").count() < 100
        grid.focus()
        page.keyboard.press("End")
        expect(page.locator(".grid-row[aria-selected=true]")).to_contain_text(last if view == "topics" else "key")
        assert page.locator(".grid-row").count() < 100


def test_a_topic_is_browsed_and_a_record_opened_by_keyboard(page: Page, full: ServedLog) -> None:
    visit(page, full, "topics/shop-orders")
    grid = page.get_by_role("grid", name="Records of shop-orders")
    expect(grid.locator(".grid-row")).to_have_count(4)
    grid.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    sheet = page.locator("dialog.sheet")
    expect(sheet).to_contain_text("Appended")
    sheet.get_by_role("button", name="Bytes").last.click()
    expect(sheet.locator("pre").last).to_contain_text("000000  7b 22")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    page.get_by_label("Show", exact=True).select_option("key")
    page.get_by_label("Key", exact=True).fill("o1")
    page.keyboard.press("Enter")
    expect(grid.locator(".grid-row")).to_have_count(1)
    expect(grid.locator(".grid-row")).to_contain_text('"AMOUNT":2.5')


def test_a_record_is_produced(page: Page, full: ServedLog) -> None:
    visit(page, full, "topics/topic-0000")
    page.get_by_role("button", name="Produce a record").click()
    page.get_by_label("Key", exact=True).fill("k")
    page.get_by_label("Value", exact=True).fill('{"a": 1}')
    page.get_by_role("button", name="Append the record").click()
    expect(page.locator(".toast")).to_contain_text("One record was appended")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".grid-row")).to_contain_text('{"a": 1}')


def test_a_table_is_searched_and_a_row_shows_its_versions(page: Page, full: ServedLog) -> None:
    visit(page, full, "tables/prices/prices")
    page.get_by_label("Key", exact=True).fill("onerror")
    expect(page.locator(".grid-row")).to_have_count(1)
    page.locator(".grid-row").click()
    expect(page.locator("dialog .timeline li")).to_have_count(2)
    expect(page.locator("dialog .timeline li").last).to_contain_text('"label":"old"')
    page.keyboard.press("Escape")
    page.get_by_label("Search", exact=True).select_option("prefix")
    page.get_by_label("Key", exact=True).fill("key-0123")
    expect(page.locator(".grid-row")).to_have_count(10)


def test_dead_letters_are_replayed_with_the_result(page: Page, full: ServedLog) -> None:
    before = full.broker.end_offsets("shop-orders")[0]
    visit(page, full, f"dead-letters?query={TOTALS}")
    letters = page.get_by_role("grid", name="Dead letters", exact=True)
    expect(letters.locator(".grid-row")).to_have_count(3)
    letters.get_by_role("checkbox", name="Select", exact=True).first.check()
    page.get_by_role("button", name="Replay 1 selected").click()
    expect(page.locator("dialog")).to_contain_text("1 record is appended to shop-orders again")
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("1 records were appended, 1 dead letters are resolved")
    expect(letters.locator(".grid-row")).to_have_count(2)
    assert full.broker.end_offsets("shop-orders")[0] == before + 1


def test_statements_run_with_completion_chart_and_marked_errors(page: Page, full: ServedLog) -> None:
    visit(page, full, "sql")
    text = page.locator("#sql")
    text.press_sequentially("SELECT * FROM tot")
    expect(page.locator("#sql-words li").first).to_contain_text("TOTALS")
    page.keyboard.press("Enter")
    page.keyboard.type(";")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".result .grid-row")).to_contain_text("ann")
    page.get_by_role("button", name="Chart").click()
    expect(page.locator(".sql-chart rect")).to_have_count(1)
    text.fill("SHOW STREAMS;\nSELECT nothing FROM totals;")
    page.keyboard.press("Control+Enter")
    expect(page.locator("main [role=alert]")).to_contain_text(re.compile("nothing", re.IGNORECASE))
    expect(page.locator(".marks mark")).to_have_text(re.compile("nothing", re.IGNORECASE))
    expect(page.locator(".result")).to_have_count(1)


def test_a_push_query_shows_rows_as_they_arrive_until_it_is_stopped(page: Page, full: ServedLog) -> None:
    visit(page, full, "sql")
    page.locator("#sql").fill("SELECT user_id, amount FROM orders EMIT CHANGES;")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".result [role=columnheader]").first).to_have_text("USER_ID")
    full.play.do("INSERT INTO orders (id, user_id, amount) VALUES ('live', 'zoe', 7.5);")
    expect(page.locator(".result .grid-row")).to_contain_text("zoe")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("status").filter(has_text="Stopped.")).to_be_visible()


def test_a_query_is_paused_after_a_confirmation(page: Page, full: ServedLog) -> None:
    visit(page, full, f"queries/{TOTALS}")
    page.get_by_role("button", name="Pause").click()
    page.locator("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator(".toast")).to_be_visible()
    assert full.play.database.catalog_state().queries[TOTALS].paused


def test_a_query_is_compared_with_its_file_after_a_confirmation(page: Page, full: ServedLog) -> None:
    changes = [
        {"step": "prices", "what": HOSTILE, "fits": False},
        {"step": "labels", "what": "is new", "fits": True},
    ]
    with QueryTables(full.broker, Settings(), ["prices"]) as database, Server(database, port=0) as server:
        server.compare("prices", lambda: changes)
        page.goto(f"{server.url}/console/#/queries/prices?tab=settings")
        page.get_by_role("button", name="Compare with the file").click()
        page.locator("dialog").get_by_role("button", name="Compare").click()
        expect(page.locator(".changes li")).to_have_text([f"does not fit prices: {HOSTILE}", "fits labels: is new"])
        assert page.evaluate("window.hacked") is None


def test_the_cluster_shows_the_executors_and_how_often_groups_were_rebalanced(page: Page, full: ServedLog) -> None:
    executor = {"address": HOSTILE, "running": 3, "used_bytes": 10**6, "memory_bytes": 10**9}
    spark = {"application": "a", "master": "local", "slots": 4, "ui": None, "stages": [], "executors": [executor]}

    def with_spark(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), "spark": spark})

    page.route("**/cluster", with_spark)
    visit(page, full, "cluster")
    row = page.get_by_role("grid", name="Executors").locator(".grid-row")
    expect(row).to_contain_text(HOSTILE)
    expect(row).to_contain_text("1.0 MB of 1.0 GB")
    expect(page.get_by_role("columnheader", name="Rebalances")).to_be_visible()
    expect(page.get_by_role("row", name="billing")).to_be_visible()


def test_a_saga_shows_its_timeline_and_takes_actions(page: Page, full: ServedLog) -> None:
    visit(page, full, "sagas")
    page.locator(".grid-row", has_text="stuck").first.click()
    expect(page.locator("dialog .timeline li").first).to_contain_text("started")
    page.locator("dialog").get_by_role("button", name="Retry").click()
    page.get_by_role("button", name="retry", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("retry")


def test_a_token_is_asked_for_and_decides_what_can_be_done(page: Page, full: ServedLog, tmp_path: Path) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": "read=a-token-to-read-with"})
    with Server(full.play.database, port=0, tokens=tokens) as server:
        page.goto(f"{server.url}/console/#/topics/shop-orders")
        page.locator("dialog input").fill("wrong-token-of-enough-length")
        page.keyboard.press("Enter")
        page.locator("dialog input").fill("a-token-to-read-with")
        page.keyboard.press("Enter")
        expect(page.locator(".grid-row").first).to_be_visible()
        produce = page.get_by_role("button", name="Produce a record")
        expect(produce).to_be_disabled()
        expect(produce).to_have_attribute("title", "Your token lacks the scope write.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_every_view(page: Page, full: ServedLog, scheme: str) -> None:
    from browser.test_page import CONTRAST

    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for view in VIEWS:
        visit(page, full, view)
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator(LOADING)).to_have_count(0)
        assert page.evaluate(CONTRAST) == [], view


def test_the_first_view_is_small_and_its_parts_come_from_this_server(page: Page, full: ServedLog) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{full.url}/console/")
    expect(page.locator(".grid-row").first).to_be_visible()
    sizes = "() => performance.getEntriesByType('resource').reduce((sum, one) => sum + one.transferSize, 0)"
    assert page.evaluate(sizes) < 300_000
    assert all(url.startswith(full.url) for url in asked)
