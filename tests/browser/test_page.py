from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.scripted_feed import NODES, QUERY, ScriptedFeed
from potok.log.open import open_broker
from potok.server.figures import figures
from potok.server.inspection import live
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.queries.query_tables import QueryTables

pytestmark = pytest.mark.browser

Serve = Callable[..., "ServedPage"]
BATCH = "Number((document.querySelector('#batch')?.textContent || '').replaceAll(',', ''))"


class ServedPage:
    """The view of one query, on a server that can be stopped."""

    def __init__(self, server: Server) -> None:
        self.server, self.port = server, server.port
        self.url = f"{server.url}/console/#/queries/{QUERY}"

    def stop(self) -> None:
        self.server.stop()


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Serve a feed, with a look at it every 50 milliseconds."""
    monkeypatch.setattr(live, "LOOK_S", 0.05)
    monkeypatch.setattr(live.LiveFigures, "look_s", 0.05)
    monkeypatch.setattr(figures, "FRESH_S", 0.01)
    monkeypatch.setattr(figures, "SAMPLE_S", 0.05)
    started: list[Server] = []
    with QueryTables(open_broker(tmp_path), Settings(), []) as database:

        def start(feed: ScriptedFeed, port: int = 0) -> ServedPage:
            server = Server(database, port=port)
            server.figures.add(QUERY, feed)
            server.start()
            started.append(server)
            return ServedPage(server)

        yield start
        for server in started:
            server.stop()


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_the_numbers_move(page: Page, serve: Serve) -> None:
    page.goto(serve(ScriptedFeed(batch=50)).url)
    batch = page.locator("#batch")
    expect(batch).not_to_have_text("–")
    first = number(batch.inner_text())

    page.wait_for_function(f"() => {BATCH} > {first + 5}")

    expect(page.locator("#query")).to_have_text("shop-orders")
    expect(page.locator("#state-text")).to_have_text("Running")
    rate = page.locator("[data-tile=rate_in] .number").inner_text()
    assert 2_000 < number(rate) < 4_000
    assert "," in rate
    assert "shop-orders" in page.title()


def test_a_reload_shows_the_history_at_once(page: Page, serve: Serve) -> None:
    server = serve(ScriptedFeed())
    page.goto(server.url)
    page.wait_for_function(f"() => {BATCH} > 40")

    page.reload()

    expect(page.locator("#batch")).not_to_have_text("–")
    line = page.locator("[data-tile=rate_in] .spark .line").get_attribute("d") or ""
    assert line.count("L") > 15


def test_the_topology_is_drawn_left_to_right(page: Page, serve: Serve) -> None:
    page.goto(serve(ScriptedFeed()).url)

    expect(page.locator(".step")).to_have_count(len(NODES))
    expect(page.locator(".edge")).to_have_count(sum(len(node["upstreams"]) for node in NODES))
    left = {node["name"]: page.locator(f'[data-step="{node["name"]}"]').bounding_box() for node in NODES}
    for node in NODES:
        for upstream in node["upstreams"]:
            before, after = left[upstream], left[node["name"]]
            assert before is not None and after is not None
            assert before["x"] + before["width"] < after["x"]
    expect(page.locator(".badge.python")).to_have_count(1)
    expect(page.locator(".badge.native")).to_have_count(sum(node["mode"] == "native" for node in NODES))
    expect(page.locator('[data-step="orders"] .count')).not_to_have_text("–")


def test_the_details_of_a_step_open_by_keyboard(page: Page, serve: Serve) -> None:
    page.goto(serve(ScriptedFeed()).url)
    page.locator('[data-step="mark"]').focus()

    expect(page.locator("#detail")).to_contain_text("python: the function calls str.upper")
    expect(page.locator("#detail")).to_contain_text("shop/orders.py:14")


def test_steps_never_overlap_whatever_the_graph(page: Page, serve: Serve) -> None:
    page.goto(serve(ScriptedFeed()).url)
    clashes = page.evaluate(
        """async () => {
          const { layout } = await import("/console/static/query/layout.js");
          let seed = 7;
          const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
          const clashes = [];
          for (let round = 0; round < 60; round += 1) {
            const nodes = [];
            for (let i = 0; i < 2 + random(24); i += 1) {
              const upstreams = new Set();
              for (let k = random(3); k > 0 && i; k -= 1) upstreams.add(`n${random(i)}`);
              nodes.push({ name: `n${i}`, upstreams: [...upstreams] });
            }
            const plan = layout(nodes, { width: 100, height: 50, gapX: 40, gapY: 10 });
            const places = [...plan.places.values()];
            for (const [i, a] of places.entries()) {
              if (a.y < -0.01 || a.y + 50 > plan.height + 0.01) clashes.push(`outside ${round}`);
              for (const b of places.slice(i + 1)) {
                if (a.x === b.x && Math.abs(a.y - b.y) < 59.9) clashes.push(`overlap ${round}`);
              }
            }
            if (plan.edges.some((edge) => /NaN|undefined/.test(edge.path))) clashes.push(`path ${round}`);
          }
          return clashes;
        }"""
    )
    assert clashes == []


def test_top_users_and_windows_move(page: Page, serve: Serve) -> None:
    page.goto(serve(ScriptedFeed(batch=10)).url)

    expect(page.locator(".bars li")).to_have_count(10)
    expect(page.locator(".window")).to_have_count(30)
    first = page.locator(".window").first
    handle = first.element_handle()
    page.wait_for_function("node => !node.isConnected", arg=handle)
    expect(page.locator(".legend.parts li").first).to_have_text("Berlin")
    amount = page.locator(".bars .amount").first
    before = amount.inner_text()
    expect(amount).not_to_have_text(before)


def test_a_window_shows_its_parts_by_keyboard(page: Page, serve: Serve) -> None:
    page.goto(serve(ScriptedFeed("stopped", batch=60)).url)
    expect(page.locator(".window")).to_have_count(30)
    page.locator(".chart").focus()
    page.keyboard.press("ArrowLeft")

    expect(page.locator(".tip")).to_contain_text("Berlin")
    page.keyboard.press("Escape")
    expect(page.locator(".tip")).to_be_hidden()


def test_dead_letters_are_shown_with_their_reasons_and_never_as_markup(page: Page, serve: Serve) -> None:
    page.goto(serve(ScriptedFeed(batch=40)).url)

    expect(page.locator("#reasons .chip[data-reason=late]")).to_contain_text("late")
    expect(page.locator("#letters-open")).to_contain_text("open")
    expect(page.locator("#letters tr").nth(3)).to_be_visible()
    page.locator("#reasons .chip[data-reason=decode]").click()
    page.wait_for_function("() => document.querySelectorAll('#letters tr').length > 3")
    reasons = page.locator("#letters .chip").all_inner_texts()
    assert set(reasons) == {"decode"}
    expect(page.locator("#letters code", has_text='<b>"o-3"').first).to_be_visible()
    assert page.locator("#letters code b").count() == 0


def test_before_the_first_batch_the_page_says_that_spark_is_starting(page: Page, serve: Serve) -> None:
    feed = ScriptedFeed("starting")
    page.goto(serve(feed).url)

    expect(page.locator("#state-text")).to_have_text("Spark is starting…")
    expect(page.locator(".step")).to_have_count(len(NODES))
    expect(page.locator(".top-card .empty")).to_have_text("Waiting for the first batch…")
    heights = page.evaluate("() => document.documentElement.scrollHeight")

    feed.phase = "running"

    expect(page.locator("#state-text")).to_have_text("Running")
    expect(page.locator(".top-card .empty")).to_be_hidden()
    assert abs(page.evaluate("() => document.documentElement.scrollHeight") - heights) < 4


def test_a_query_that_failed_says_why(page: Page, serve: Serve) -> None:
    page.goto(serve(ScriptedFeed("failed", batch=20)).url)

    expect(page.locator("#state-text")).to_have_text("Failed")
    expect(page.locator("#failed")).to_have_text("QueryError: the disk is full")


def test_a_lost_connection_is_noticed_and_comes_back(page: Page, serve: Serve) -> None:
    feed = ScriptedFeed()
    server = serve(feed)
    page.goto(server.url)
    expect(page.locator("#batch")).not_to_have_text("–")

    server.stop()
    expect(page.locator("#lost")).to_be_visible()
    expect(page.locator("#lost")).to_contain_text("Reconnecting")

    serve(feed, server.port)
    expect(page.locator("#lost")).to_be_hidden()
    page.wait_for_function(f"() => {BATCH} > {feed.batch}")


def test_a_query_that_stopped_says_so_and_nothing_of_the_server(page: Page, serve: Serve) -> None:
    feed = ScriptedFeed(batch=20)
    server = serve(feed)
    page.goto(server.url)
    expect(page.locator("#state-text")).to_have_text("Running")

    feed.phase = "stopped"
    server.stop()

    expect(page.locator("#state-text")).to_have_text("Stopped")
    page.wait_for_function(
        "() => performance.getEntriesByName(location.origin + '/queries/shop-orders/live').length > 1"
    )
    expect(page.locator("#lost")).to_be_hidden()
    assert page.evaluate("() => getComputedStyle(document.querySelector('main')).opacity") == "1"
    assert page.title().startswith("Stopped")


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_moves_when_a_step_is_pointed_at(page: Page, serve: Serve, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    feed = ScriptedFeed(batch=30)
    page.goto(serve(feed).url)
    expect(page.locator(".window").first).to_be_visible()
    feed.phase = "stopped"
    expect(page.locator("#state-text")).to_have_text("Stopped")
    places = """() => [...document.querySelectorAll("main > *, .card, .tile, header > *, .step .box")]
        .map((node) => { const box = node.getBoundingClientRect(); return [box.x, box.y + scrollY, box.height]; })"""
    page.locator('[data-step="orders"]').hover()
    before = page.evaluate(places)
    scrolled = page.evaluate("() => document.querySelector('.flow').scrollLeft")
    for node in NODES:
        page.evaluate(
            "(name) => document.querySelector(`[data-step='${name}']`).dispatchEvent(new PointerEvent('pointerenter'))",
            node["name"],
        )
        expect(page.locator("#detail")).to_contain_text(node["name"])
        assert page.evaluate(places) == before, node["name"]
    assert page.evaluate("() => document.querySelector('.flow').scrollLeft") == scrolled


def test_what_is_cut_off_on_a_phone_can_be_seen_to_scroll(page: Page, serve: Serve) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(serve(ScriptedFeed(batch=60)).url)
    expect(page.locator("#letters tr").first).to_be_visible()
    for region in (".letters .scroll", ".flow"):
        found = page.locator(region)
        expect(found).to_have_attribute("data-cut", "right")
        assert "36px" in found.evaluate("(node) => getComputedStyle(node).maskImage")
        found.evaluate("(node) => node.scrollTo(40, 0)")
        expect(found).to_have_attribute("data-cut", "left right")
        found.evaluate("(node) => node.scrollTo(node.scrollWidth, 0)")
        expect(found).to_have_attribute("data-cut", "left")
    for width in (1436, 1437, 1438, 1439, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        expect(page.locator(".flow")).to_have_attribute("data-cut", "")
    page.set_viewport_size({"width": 1920, "height": 900})
    for region in (".letters .scroll", ".flow"):
        expect(page.locator(region)).to_have_attribute("data-cut", "")


def test_dark_and_light_follow_the_system_and_the_button(page: Page, serve: Serve) -> None:
    ground = "() => getComputedStyle(document.body).backgroundColor"
    page.goto(serve(ScriptedFeed()).url)
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    assert light != dark

    page.get_by_role("button", name="Switch to the light theme").click()
    assert page.evaluate(ground) == light
    page.reload()
    assert page.evaluate(ground) == light
    page.get_by_role("button", name="Switch to the dark theme").click()
    assert page.evaluate(ground) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(page: Page, serve: Serve, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(serve(ScriptedFeed(batch=80)).url)
    expect(page.locator("#letters tr").nth(3)).to_be_visible()
    weak = page.evaluate(CONTRAST)
    assert weak == []


@pytest.mark.parametrize("width", [360, 768, 1920])
def test_the_page_fits_its_window(page: Page, serve: Serve, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(serve(ScriptedFeed(batch=30)).url)
    expect(page.locator(".window").first).to_be_visible()

    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


CONTRAST = """() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const blend = (layers) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of layers) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const weak = [];
  for (const node of document.querySelectorAll("h1, h2, p, dt, dd, th, td, li, button, code, small, .number, .unit")) {
    if (!node.checkVisibility() || !node.textContent.trim()) continue;
    const grounds = [];
    for (let up = node; up; up = up.parentElement) grounds.unshift(getComputedStyle(up).backgroundColor);
    const [back, front] = [blend(grounds), blend([...grounds, getComputedStyle(node).color])].map(light);
    const ratio = (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05);
    if (ratio < 4.5) weak.push(`${node.tagName} ${ratio.toFixed(2)} ${node.textContent.slice(0, 30)}`);
  }
  return weak;
}"""
