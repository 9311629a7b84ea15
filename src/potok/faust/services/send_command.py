"""The command `send`: send a record from the command line to a topic or an agent."""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from potok.errors import QueryError
from potok.faust.messaging.channel import OnlyAgentsPut
from potok.faust.messaging.sending import Sent
from potok.faust.messaging.topic import Topic
from potok.faust.records.model import Model, model_named
from potok.faust.records.record import Record

if TYPE_CHECKING:
    from potok.faust.app import App


class NoSuchThing(QueryError):
    """A topic, an agent or a record class that the app does not have."""

    def __init__(self, what: str, name: str, known: Sequence[str]) -> None:
        super().__init__(f'the app has no {what} "{name}"', hint=f"it has: {', '.join(known) or 'none'}")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("entity", metavar="TOPIC|@AGENT")
    parser.add_argument("value", nargs="?", help="JSON, or text")
    parser.add_argument("-k", "--key", help="the key, as text")
    parser.add_argument("-K", "--key-type", metavar="MODEL", help="the record class of the key, which is JSON then")
    parser.add_argument("-V", "--value-type", metavar="MODEL", help="the record class of the value")
    parser.add_argument("--key-serializer", help="the format of the key: json, raw, or a codec")
    parser.add_argument("--value-serializer", help="the format of the value, if not that of the topic")
    parser.add_argument("--partition", type=int, help="not supported: the key determines it")
    parser.add_argument("-r", "--repeat", type=int, default=1, metavar="N", help="number of times to send it")
    parser.add_argument("--min-latency", type=float, default=0.0, metavar="S", help="minimum pause between records")
    parser.add_argument("--max-latency", type=float, default=0.0, metavar="S", help="maximum pause between records")


def send(app: App, parsed: argparse.Namespace) -> None:
    """Send the records of the command line, and print the position of each."""
    topic = _topic(app, parsed.entity)
    record = {
        "key": parsed.key if parsed.key_type is None else _model(parsed.key_type).from_data(_data(parsed.key)),
        "value": _value(topic, parsed),
        "partition": parsed.partition,
    }
    formats = {name: getattr(parsed, name) for name in ("key_serializer", "value_serializer") if getattr(parsed, name)}
    asyncio.run(_all(topic, {**record, **formats}, parsed))


async def _all(topic: Topic, record: dict[str, Any], parsed: argparse.Namespace) -> None:
    for number in range(parsed.repeat):
        if number and parsed.max_latency:
            await asyncio.sleep(random.uniform(min(parsed.min_latency, parsed.max_latency), parsed.max_latency))
        print(_position(await topic.send(**record), as_json=parsed.json), flush=True)


def _position(sent: Sent, *, as_json: bool) -> str:
    if as_json:
        position = {"topic": sent.topic, "partition": sent.partition, "offset": sent.offset}
        return orjson.dumps(position).decode()
    return f"{sent.topic}, partition {sent.partition}, offset {sent.offset}"


def _value(topic: Topic, parsed: argparse.Namespace) -> Any:
    value = parsed.value
    if value is not None and (parsed.value_serializer or topic.serializer) == "json":
        value = _data(value)
    model = topic.value_type if parsed.value_type is None else _model(parsed.value_type)
    return model.from_data(value) if isinstance(model, type) and issubclass(model, Record) else value


def _data(text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _model(name: str) -> type[Model]:
    found = model_named(name)
    if found is None:
        raise NoSuchThing("record class", name, sorted(model.__namespace__ for model in Record.__subclasses__()))
    return found


def _topic(app: App, entity: str) -> Topic:
    if entity.startswith("@"):
        if entity[1:] not in app.agents:
            raise NoSuchThing("agent", entity[1:], sorted(app.agents))
        found = app.agents[entity[1:]].topic
        if not isinstance(found, Topic):
            raise OnlyAgentsPut(found.name)
        return found
    for topic in app.topics:
        if entity in topic.names:
            return topic
    raise NoSuchThing("topic", entity, sorted({topic.name for topic in app.topics}))
