"""The commands of a program in Faust's style: `python shop.py worker -l info`."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import orjson

from potok.app.agent import Agent
from potok.app.channel import OnlyAgentsPut
from potok.app.cli import carry_out, commands_of
from potok.app.record import Record
from potok.app.running import started
from potok.app.services import Services
from potok.app.topic import Topic
from potok.engine.logs import LEVELS, write_logs
from potok.errors import PotokError, QueryError
from potok.topology.describe import describe

if TYPE_CHECKING:
    from potok.app.app import App

HOSTED = "potok.cli.hosting:hosted"
"""What serves pages. It is found by its name, as a plug-in would be: an app knows nothing of servers."""

SHORT = 80
"""So much is told of a command in the list of all."""

_logger = logging.getLogger("potok.app")


class NoSuchThing(QueryError):
    """A topic or an agent that the app does not have."""

    def __init__(self, what: str, name: str, known: Sequence[str]) -> None:
        super().__init__(f'the app has no {what} "{name}"', hint=f"it has: {', '.join(known) or 'none'}")


def main(app: App, arguments: Sequence[str] | None = None) -> None:
    """Carry out what the command line says, and end the process as it ended."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if not _own(app, given):
            parsed = _parser(app).parse_args(given)
            parsed.command(app, parsed)
    except PotokError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _parser(app: App) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=f'The app "{app.id}".')
    parser.add_argument("--json", action="store_true", help="print JSON")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, work: Callable[[App, argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
        made.set_defaults(command=work)
        return made

    worker = command("worker", _worker, "Run the agents until Ctrl-C or SIGTERM.")
    worker.add_argument("-l", "--loglevel", default="warn", choices=LEVELS, type=str.lower)
    worker.add_argument("--until-end", action="store_true", help="stop when all records that are there are processed")
    _web_options(worker)
    send = command("send", _send, "Send a record to a topic, or to an @agent.")
    send.add_argument("entity", metavar="TOPIC|@AGENT")
    send.add_argument("value", nargs="?", help="JSON, or text")
    send.add_argument("-k", "--key", help="the key, as text")
    send.add_argument("--repeat", type=int, default=1)
    command("agents", _agents, "List the agents.")
    command("tables", _tables, "List the tables.")
    command("models", _models, "List the record classes.")
    command("explain", _explain, "Show the topology: which agents are spread, and why others are not.")
    command("reset", _reset, "Forget where the app stands and all its tables; its topics stay.")
    for name, own in commands_of(app).items():
        command(name, _nothing, own.get_short_help_str(SHORT))
    return parser


def command_names(app: App) -> tuple[str, ...]:
    """What a program can be told on the command line."""
    actions = [action for action in _parser(app)._actions if isinstance(action, argparse._SubParsersAction)]
    return tuple(name for action in actions for name in action.choices)


def _web_options(worker: argparse.ArgumentParser) -> None:
    worker.add_argument("-p", "--web-port", type=int, help="where pages are served; 0 for any port that is free")
    worker.add_argument("-b", "--web-bind", "--web-host", help="the address to listen on; other machines need tokens")
    worker.add_argument("--web-tokens", type=Path, metavar="FILE", help="who may do what: a tokens.toml")
    worker.add_argument("--web-cors", action="append", default=[], metavar="ORIGIN", help="a site that may call pages")
    worker.add_argument("--without-web", action="store_true", help="serve no pages")
    worker.add_argument("--with-web", dest="without_web", action="store_false", help=argparse.SUPPRESS)


def _worker(app: App, parsed: argparse.Namespace) -> None:
    from potok.engine.run import wait_for

    write_logs(parsed.loglevel)
    _logger.info('app "%s" begins on %s; Spark takes some seconds to start', app.id, app.settings().broker)
    with _served(app, parsed):
        query = started(app, until_end=parsed.until_end)
        with app.statements.at_work(until_end=parsed.until_end), Services(app, app.timed):
            _logger.info('app "%s" runs (%s); Ctrl-C stops it', app.id, _told(app))
            wait_for(query)


def _told(app: App) -> str:
    """How many there are of what runs."""
    counts = {"agent": len(app.agents), "table": len(app.tables), "timer": len(app.timed)}
    return ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts.items() if count)


@contextmanager
def _served(app: App, parsed: argparse.Namespace) -> Iterator[None]:
    if parsed.without_web or not app.options.get("web_enabled", True):
        yield
        return
    hosted = resolve_name(HOSTED)
    web = {"host": parsed.web_bind, "port": parsed.web_port, "tokens": parsed.web_tokens, "origins": parsed.web_cors}
    with hosted(app, **web) as server:
        if server is not None:
            print(f"pages of {app.id}: {server.url}", file=sys.stderr, flush=True)
        yield


def _send(app: App, parsed: argparse.Namespace) -> None:
    topic = _topic(app, parsed.entity)
    value: Any = parsed.value
    if value is not None and topic.serializer == "json":
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            value = parsed.value
    if isinstance(topic.value_type, type) and issubclass(topic.value_type, Record):
        value = topic.value_type.from_data(value)
    for _ in range(parsed.repeat):
        topic.send_soon(key=parsed.key, value=value)


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


def _agents(app: App, parsed: argparse.Namespace) -> None:
    rows = [
        {"name": f"@{agent.name}", "topic": ", ".join(agent.topic.names), "help": _doc(agent)}
        for agent in app.agents.values()
    ]
    _show(rows, as_json=parsed.json)


def _doc(agent: Agent) -> str:
    return (agent.fun.__doc__ or "").strip().partition("\n")[0]


def _tables(app: App, parsed: argparse.Namespace) -> None:
    rows = [
        {"name": table.name, "windows": "" if table.windowed is None else str(table.windowed.window)}
        for table in app.tables.values()
    ]
    _show(rows, as_json=parsed.json)


def _models(app: App, parsed: argparse.Namespace) -> None:  # noqa: ARG001 - as all commands
    found: list[type[Record]] = []
    ahead = list(Record.__subclasses__())
    while ahead:
        model = ahead.pop(0)
        found.append(model)
        ahead += model.__subclasses__()
    fields = [", ".join(getattr(model, "__record_fields__", ())) for model in found]
    rows = [{"name": model.__namespace__, "fields": text} for model, text in zip(found, fields, strict=True)]
    _show(sorted(rows, key=lambda row: row["name"]), as_json=parsed.json)


def _explain(app: App, parsed: argparse.Namespace) -> None:
    print(describe(app.build(), "json" if parsed.json else "text"))


def _reset(app: App, parsed: argparse.Namespace) -> None:  # noqa: ARG001
    from potok.engine.repair import forget

    forget(app.log(), app.id)
    where = "from the first record" if app.begin == "earliest" else "from their end on"
    print(f'app "{app.id}" begins anew: its tables are empty, and it reads its topics {where}')


def _own(app: App, given: list[str]) -> bool:
    """Carry out a command of the program's own, if it is one."""
    named = [text for text in given if text != "--json"]
    own = commands_of(app).get(named[0]) if named else None
    if own is None:
        return False
    at = given.index(named[0])
    carry_out(own, given[at + 1 :], as_json=at > 0)
    return True


def _nothing(app: App, parsed: argparse.Namespace) -> None:
    """What a command of the program's own does is not for this parser, which lists it."""


def _show(rows: list[dict[str, str]], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(rows))
        return
    if not rows:
        print("none")
        return
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
    for row in ({name: name for name in rows[0]}, *rows):
        print("  ".join(text.ljust(widths[name]) for name, text in row.items()).rstrip())
