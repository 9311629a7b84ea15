"""A topic and a table of one name, which Faust keeps apart; and the options of agents and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.errors import PotokError
from potok.topology.nodes import StreamSource


class PageView(faust.Record):
    id: str
    user: str


def page_views(broker: str | None = None) -> faust.App:
    app = faust.App("views", broker=broker)
    topic = app.topic("page_views", value_type=PageView)
    counts = app.Table("page_views", default=int)

    @app.agent(topic)
    async def count(stream: Any) -> None:
        async for view in stream.group_by(PageView.id):
            counts[view.id] += 1

    return app


def sources(app: faust.App) -> list[tuple[str, str]]:
    return [(node.name, node.topic) for node in app.build().of_type(StreamSource)]


def test_a_table_may_be_called_as_the_topic_it_is_made_from() -> None:
    app = page_views()
    assert sources(app) == [("page_views.topic", "page_views")]
    with InProcess(app) as driver:
        for user in ("ann", "bob"):
            driver.send("page_views", {"id": "home", "user": user})
        driver.send("page_views", {"id": 5})
        driver.run()
        assert driver.table("page_views").all() == {"home": 2}
        assert len(driver.dead_letters()) == 1


def test_a_topic_that_no_table_is_called_as_keeps_its_name() -> None:
    app = faust.App("app")
    app.Table("counts", default=int)

    @app.agent(app.topic("orders"))
    async def count(stream: Any) -> None:
        async for _ in stream:
            pass

    assert sources(app) == [("orders", "orders")]


@pytest.mark.parametrize("first", ["stream", "table"])
def test_the_dsl_reads_a_topic_and_a_table_of_one_name_in_one_app(first: str) -> None:
    app = page_views()
    counts = app.tables["page_views"]

    def users() -> None:
        app.stream("page_views").map_values(lambda view: view["user"]).to("users")

    def changes() -> None:
        counts.to_stream().to("changes")

    for work in (users, changes) if first == "stream" else (changes, users):
        work()
    with InProcess(app) as driver:
        driver.send("page_views", {"id": "home", "user": "ann"})
        driver.run()
        assert [record.value for record in driver.read("users")] == ["ann"]
        assert [record.value for record in driver.read("changes")] == [1]


def test_statements_mean_the_table_by_the_name_and_the_topic_has_one_too(tmp_path: Path) -> None:
    app = page_views(f"file:{tmp_path}")
    with InProcess(app, directory=tmp_path) as driver:
        driver.send("page_views", {"id": "home", "user": "ann"})
        driver.run()
        assert app.sql("SELECT * FROM page_views WHERE key = 'home';") == [{"KEY": "home", "VALUE": 1}]
        assert set(app.statements.database.catalog.sources) == {"PAGE_VIEWS", "PAGE_VIEWS_TOPIC"}
    app.statements.close()


def test_an_agent_without_a_topic_has_one_of_its_own_with_the_types_it_is_given() -> None:
    app = faust.App("app")
    out = app.topic("out")

    @app.agent(key_type=str, value_type=PageView, help="all views")
    async def views(stream: Any) -> None:
        """Not this line."""
        async for key, view in stream.items():
            await out.send(value=[key, view.user])

    assert (views.topic.name, views.topic.value_type, views.help) == ("app-views", PageView, "all views")
    with InProcess(app) as driver:
        driver.send("app-views", {"id": "home", "user": "ann"}, key="k")
        driver.run()
        assert [record.value for record in driver.read("out")] == [["k", "ann"]]


def test_a_schema_types_the_topic_of_an_agent_that_is_named() -> None:
    app = faust.App("app")

    @app.agent("views", schema=faust.Schema(value_type=PageView))
    async def views(stream: Any) -> None:
        """The first line.

        Not the third.
        """

    assert (views.topic.name, views.topic.value_type, views.help) == ("views", PageView, "The first line.")


def test_types_are_not_said_twice() -> None:
    app = faust.App("app")

    async def views(stream: Any) -> None: ...

    with pytest.raises(PotokError, match="already has types") as caught:
        app.agent(app.topic("views"), value_type=PageView)(views)
    assert "app.topic(..., value_type=...)" in caught.value.hint


def test_an_agent_defined_twice_is_reported_in_good_english() -> None:
    app = faust.App("app")

    async def views(stream: Any) -> None: ...

    app.agent("views")(views)
    with pytest.raises(PotokError, match='there is an agent "views" already'):
        app.agent("views")(views)
    app.Table("rows")
    with pytest.raises(PotokError, match='there is a table "rows" already'):
        app.Table("rows")


@pytest.mark.parametrize("kind", ["SetTable", "SetGlobalTable"])
def test_a_table_of_sets_says_of_what(kind: str, tmp_path: Path) -> None:
    app = faust.App("app", broker=f"file:{tmp_path}")
    joining = app.topic("joining", key_type=str)
    people = getattr(app, kind)("people", key_type=str, value_type=str, start_manager=True)

    @app.agent(joining)
    async def join(stream: Any) -> None:
        async for room, name in stream.items():
            people[room].add(name)

    with InProcess(app, directory=tmp_path) as driver:
        for name in ("ann", "bob", "ann"):
            driver.send("joining", name, key="hall")
        driver.run()
        assert people["hall"] == {"ann", "bob"}
        assert app.sql("SELECT * FROM people;") == [{"KEY": "hall", "VALUE": ["ann", "bob"]}]
    app.statements.close()


def test_a_title_is_printed_above_the_rows(tmp_path: Path) -> None:
    app = page_views(f"file:{tmp_path}")
    counts = app.tables["page_views"]
    with InProcess(app, directory=tmp_path) as driver:
        driver.send("page_views", {"id": "home", "user": "ann"})
        driver.run()
        rendered = counts.as_ansitable(title="$$ TALLY of {table.name}", key="page", value="views")
    assert rendered.splitlines() == ["$$ TALLY of page_views", "page  views", "home  1"]
