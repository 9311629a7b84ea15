"""What programs written for Faust do besides the shop: verbs, topics together, codecs, tables in the DSL."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.errors import PotokError
from potok.faust.records.codecs import Binary, Codec, Json, NoCodec, get_codec, register


class Order(faust.Record):
    user: str
    amount: float


class Payment(faust.Record):
    user: str
    paid: float


def sent(driver: InProcess, topic: str = "out") -> list[Any]:
    return [record.value for record in driver.read(topic)]


@pytest.mark.parametrize("together", ["verb", "topics", "combine"])
def test_an_agent_takes_topics_of_several_types_together(together: str) -> None:
    app = faust.App("app")
    orders, payments = app.topic("orders", value_type=Order), app.topic("payments", value_type=Payment)
    out = app.topic("out")

    async def by_verb(stream: Any) -> None:
        async for value in stream & payments.stream():
            await out.send(value=type(value).__name__)

    async def by_combine(stream: Any) -> None:
        async for value in stream.combine(payments):
            await out.send(value=type(value).__name__)

    async def plain(stream: Any) -> None:
        async for value in stream:
            await out.send(value=type(value).__name__)

    functions = {"verb": by_verb, "combine": by_combine, "topics": plain}
    app.agent(orders & payments if together == "topics" else orders, name="both")(functions[together])
    with InProcess(app) as driver:
        driver.send("orders", {"user": "u", "amount": 1.0})
        driver.send("payments", {"user": "u", "paid": 1.0})
        driver.run()
        assert sorted(sent(driver)) == ["Order", "Payment"]


def test_echo_sends_each_value_on_also_to_a_topic_by_name() -> None:
    app = faust.App("app")
    numbers, out = app.topic("numbers"), app.topic("out")

    @app.agent(numbers)
    async def work(stream: Any) -> None:
        async for number in stream.echo("copies", out):
            await out.send(value=number * 10)

    with InProcess(app) as driver:
        driver.send("numbers", 1, key="k")
        driver.run()
        assert (sent(driver, "copies"), sent(driver)) == ([1], [1, 10])


def test_a_processor_changes_what_the_loop_sees() -> None:
    app = faust.App("app")
    numbers, out = app.topic("numbers"), app.topic("out")

    @app.agent(numbers)
    async def work(stream: Any) -> None:
        stream.add_processor(lambda number: number + 1)
        async for events in stream.noack().take_events(2, within=1):
            await out.send(value=[[event.value, event.message.offset] for event in events])

    with InProcess(app) as driver:
        for number in (1, 2, 3):
            driver.send("numbers", number)
        driver.run()
        assert sent(driver) == [[[2, 0], [3, 1]], [[4, 2]]]


def test_lists_with_times_have_them_in_the_field_that_was_named() -> None:
    app = faust.App("app")
    orders, out = app.topic("orders"), app.topic("out")

    @app.agent(orders)
    async def work(stream: Any) -> None:
        async for values in stream.take_with_timestamp(2, 1, "at"):
            await out.send(value=values)

    with InProcess(app) as driver:
        driver.send("orders", {"n": 1}, timestamp=5000)
        driver.run()
        assert sent(driver) == [[{"n": 1, "at": 5.0}]]


def test_a_forwarded_event_keeps_its_headers_and_a_sent_one_does_not() -> None:
    app = faust.App("app")
    numbers, out = app.topic("numbers", key_type=str), app.topic("out")

    @app.agent(numbers)
    async def work(stream: Any) -> None:
        async for event in stream.events():
            async with event:
                await event.forward(out)
                await event.send("out", value=event.value + 1)

    with InProcess(app) as driver:
        driver.send("numbers", 1, key="k", headers={"h": b"x"})
        driver.run()
        assert [(r.key, r.value, r.headers) for r in driver.read("out")] == [
            ("k", 1, (("h", b"x"),)),
            ("k", 2, ()),
        ]


class Upper(Codec):
    def _dumps(self, value: Any) -> bytes:
        return str(value).upper().encode()

    def _loads(self, data: bytes) -> Any:
        return data.decode().lower()


def test_topics_have_codecs_of_a_program_and_bytes_that_they_refuse_are_dead_letters() -> None:
    register("upper", Upper())
    app = faust.App("app")
    names = app.topic("names", value_serializer="upper | binary")
    out = app.topic("out", value_serializer=Json() | Binary())

    @app.agent(names)
    async def work(stream: Any) -> None:
        async for name in stream:
            await out.send(value=[name])

    with InProcess(app) as driver:
        driver.send("names", Binary().dumps(b"ANN"))
        driver.send("names", b"\xff not base 64")
        driver.run()
        assert [get_codec("json|binary").loads(r.raw_value) for r in driver.read("out")] == [["ann"]]  # type: ignore[arg-type]
        assert driver.reasons() == [("names", "decode")]


def test_pickle_is_refused_with_the_reason() -> None:
    with pytest.raises(NoCodec, match="can run code"):
        faust.App("app").topic("t", value_serializer="pickle").serdes()
    with pytest.raises(NoCodec, match="register"):
        faust.App("app").topic("t", value_serializer="msgpack").serdes()


@pytest.mark.parametrize("key", [None, Order.user])
@pytest.mark.parametrize("spread", [False, True])
def test_a_table_of_agents_is_joined_with_a_stream_of_the_dsl(key: Any, spread: bool) -> None:
    app = faust.App("app")
    orders, clicks = app.topic("orders", value_type=Order), app.topic("clicks", key_type=str)
    counts = app.Table("counts", default=int)

    @app.agent(orders, key=key)
    async def count(stream: Any) -> None:
        async for order in stream:
            counts[order.user] += 1

    app.stream(clicks).join(counts.to_table(), lambda click, n: {"click": click, "n": n}).to("known")
    app.table_stream(counts).to("counted")
    with InProcess(app, shards=3, spread=spread) as driver:
        driver.send("orders", {"user": "u", "amount": 1.0})
        driver.run()
        driver.send("clicks", "home", key="u")
        driver.send("clicks", "home", key="nobody")
        driver.send("orders", {"user": "u", "amount": 1.0})
        driver.run()
        assert [(r.key, r.value) for r in driver.read("counted")] == [("u", 1), ("u", 2)]
        assert [r.value["click"] for r in driver.read("known")] == ["home"]
        assert driver.dead_letters() == []
        driver.restart()
        driver.send("clicks", "basket", key="u")
        driver.run()
        assert sent(driver, "known")[-1] == {"click": "basket", "n": 2}


def test_a_table_in_the_dsl_that_no_agent_keeps_is_refused() -> None:
    app = faust.App("app")
    app.Table("counts", default=int).to_stream().to("out")
    app.stream(app.topic("clicks")).to("copies")
    with pytest.raises(PotokError, match="no agent writes"):
        app.build()


def test_rows_are_found_by_prefix_and_range_inside_and_outside(tmp_path: Any) -> None:
    app = faust.App("app", broker=f"file:{tmp_path}")
    numbers, out = app.topic("numbers"), app.topic("out")
    names, any_keys = app.Table("names", key_type=str), app.Table("any_keys")

    @app.agent(numbers)
    async def work(stream: Any) -> None:
        async for number in stream:
            for table in (names, any_keys):
                table[f"a{number}"] = table[f"b{number}"] = number
                await out.send(value=[sorted(table.prefix("a")), sorted(table.range("a2", "b2"))])

    with InProcess(app, directory=tmp_path) as driver:
        for number in (1, 2):
            driver.send("numbers", number)
        driver.run(1)
        assert sent(driver) == [*[[["a1"], ["b1"]]] * 2, *[[["a1", "a2"], ["a2", "b1"]]] * 2]
        for table in (names, any_keys):
            assert table.prefix("b") == {"b1": 1, "b2": 2}
            assert table.range("a2", "b2") == {"a2": 2, "b1": 1}
        assert names.as_ansitable(key="name", value="n").splitlines()[:2] == ["name  n", "a1    1"]


def test_the_topic_of_an_agent_gets_the_partitions_that_it_asks_for() -> None:
    app = faust.App("app", topic_partitions=5)
    first, second = app.topic("first", partitions=3), app.topic("second")
    for topic in (first, second):

        @app.agent(topic, name=f"of_{topic.name}")
        async def work(stream: Any) -> None:
            async for _ in stream:
                pass

    with InProcess(app) as driver:
        assert [driver.broker.partitions(name) for name in ("first", "second")] == [3, 5]


def test_a_run_ends_when_agents_have_nothing_left_for_each_other() -> None:
    app = faust.App("app")
    numbers, out = app.topic("numbers"), app.topic("out")

    @app.agent(numbers)
    async def down(stream: Any) -> None:
        async for number in stream:
            await (numbers if number else out).send(value=number - 1)

    with InProcess(app) as driver:
        driver.send("numbers", 3)
        assert driver.run() == 4
        assert sent(driver) == [-1]


def test_rows_can_be_cleared_and_taken_out_one_by_one() -> None:
    app = faust.App("app")
    numbers, out, kept = app.topic("numbers"), app.topic("out"), app.Table("kept")

    @app.agent(numbers)
    async def work(stream: Any) -> None:
        async for number in stream:
            kept.update({"a": 1, "b": 2})
            last = kept.popitem()
            kept.clear()
            await out.send(value=[last, len(kept), number])

    with InProcess(app) as driver:
        driver.send("numbers", 7)
        driver.run()
        assert sent(driver) == [[["b", 2], 0, 7]]


def test_windows_are_given_to_a_table_as_faust_has_them() -> None:
    app = faust.App("app")
    clicks = app.topic("clicks", key_type=str)
    tumbling = app.Table("tumbling", default=int, window=faust.TumblingWindow(60))
    hopping = app.Table("hopping", default=int).using_window(faust.HoppingWindow(120, 60))

    @app.agent(clicks)
    async def work(stream: Any) -> None:
        async for key, _ in stream.items():
            tumbling[key] += 1
            hopping[key] += 1

    with InProcess(app) as driver:
        driver.send("clicks", 1, key="u", timestamp=60_000)
        driver.run()
        assert len(driver.table("tumbling").windows("u")) == 1
        assert len(driver.table("hopping").windows("u")) == 2


def test_a_schema_says_what_a_topic_holds() -> None:
    topic = faust.App("app").topic("orders", schema=faust.Schema(value_type=Order, key_type=str))
    assert (topic.value_type, topic.key_type) == (Order, str)


def test_another_version_of_an_app_starts_from_the_beginning() -> None:
    assert [faust.App("app", version=version).id for version in (1, 2)] == ["app", "app-v2"]
    assert faust.App("app", version=2).name == "app"


async def _nothing(stream: Any) -> None:
    async for _ in stream:
        pass


@pytest.mark.parametrize(
    "use",
    [
        lambda app: app.monitor,
        lambda app: app.topic("t").pattern,
        lambda app: app.Table("t").left_join,
        lambda app: app.channel().queue,
        lambda app: app.agent("t")(_nothing).cancel,
        lambda app: faust.Sensor,
        lambda app: asyncio.run(_first(app.topic("t"))),
    ],
)
def test_what_faust_has_and_potok_has_not_says_what_to_do_instead(use: Any) -> None:
    with pytest.raises(PotokError, match="is not supported") as caught:
        use(faust.App("app"))
    assert caught.value.hint


async def _first(topic: Any) -> None:
    async for _ in topic:
        return


def test_two_streams_of_the_dsl_are_merged_by_an_ampersand() -> None:
    app = faust.App("app")
    (app.stream(app.topic("left")) & app.stream(app.topic("right"))).to("both")
    with InProcess(app) as driver:
        driver.send("left", 1)
        driver.send("right", 2)
        driver.run()
        assert sorted(sent(driver, "both")) == [1, 2]


def test_options_that_would_be_missed_are_refused_with_what_to_do() -> None:
    with pytest.raises(PotokError, match="pattern= has no effect") as caught:
        faust.App("app").topic("orders", pattern="orders-.*")
    assert "app.topic(" in caught.value.hint


def test_unknown_attributes_raise_an_ordinary_attribute_error() -> None:
    app = faust.App("app")
    for thing in (app, app.topic("t"), app.Table("t"), app.channel(), faust):
        with pytest.raises(AttributeError):
            thing.nonsense  # noqa: B018


UNTYPED = [dict, list, dict[str, Any], list[dict[str, Any]], Any, object, dict | None, int | str]


@pytest.mark.parametrize("value_type", UNTYPED, ids=str)
def test_a_type_that_leaves_values_open_is_json_without_a_type(value_type: Any) -> None:
    app = faust.App("app")
    numbers, out = app.topic("numbers", value_type=value_type), app.topic("out", value_type=value_type)

    @app.agent(numbers)
    async def copy(stream: Any) -> None:
        async for value in stream:
            await out.send(value=value)

    values = [{"a": 1, "b": [None, {"c": "x"}]}, [1, "two"], 3]
    with InProcess(app) as driver:
        for value in values:
            driver.send("numbers", value)
        driver.run()
        assert sent(driver) == values


def test_a_type_that_values_cannot_have_is_refused_where_the_topic_is_declared() -> None:
    app = faust.App("app")
    numbers = app.topic("numbers", value_type=complex)
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]

    @app.agent(numbers)
    async def copy(stream: Any) -> None:
        async for value in stream:
            print(value)

    with pytest.raises(PotokError, match="cannot be of type complex") as caught:
        app.build()
    assert caught.value.at is not None
    assert (caught.value.at.line, caught.value.at.file.endswith("test_programs.py")) == (line, True)
