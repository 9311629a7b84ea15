"""The commands of a Faust-style program: `python shop.py worker -l info`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from potok.errors import PotokError
from potok.faust.cli import carry_out, commands_of
from potok.faust.records.record import Record
from potok.faust.services.running import started
from potok.faust.services.send_command import add_options, send
from potok.faust.services.services import Services
from potok.monitoring.logs import COMMANDS, writes_json
from potok.server.protection import Protection
from potok.spark.worker_logs import LEVELS, set_up_logs, write_logs
from potok.topology.describe import describe

if TYPE_CHECKING:
    from potok.faust.app import App
    from potok.monitoring.monitor import Monitor

"""The server of pages, found by name like a plug-in: an app does not depend on servers."""

INTERRUPTED = 130
"""The exit status of a program that was stopped by Ctrl-C."""

SHORT = 80
"""The length of a description in the list of commands."""


def main(app: App, arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and exit with its status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if not _own(app, given):
            parsed = _parsed(app, given)
            app.choose(broker=getattr(parsed, "broker", None))
            parsed.command(app, parsed)
    except PotokError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _parsed(app: App, given: Sequence[str]) -> argparse.Namespace:
    parser = parser_of(app)
    parsed, left = parser.parse_known_args(given)
    if len(left) == 1 and not left[0].startswith("-") and getattr(parsed, "value", "") is None:
        # argparse does not accept an optional argument, such as the value of a record, after options.
        parsed.value = left.pop()
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    return parsed


def parser_of(app: App) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=f'The app "{app.id}".')
    parser.add_argument("--json", action="store_true", help="print JSON")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, work: Callable[[App, argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
        made.add_argument(
            "--broker", metavar="URL", help="the log, instead of that of the program: file:./data, kafka://..."
        )
        made.set_defaults(command=work)
        return made

    worker = command("worker", _worker, "Run the agents until Ctrl-C or SIGTERM.")
    worker.add_argument("-l", "--loglevel", default="warn", choices=LEVELS, type=str.lower)
    worker.add_argument("--until-end", action="store_true", help="stop when all existing records have been processed")
    worker.add_argument("--log-format", choices=("text", "json"), help="how logs are written to stderr")
    worker.add_argument(
        "--metrics", metavar="[HOST:]PORT", help="where /metrics, /livez and /readyz are served; 0 for any free port"
    )
    _web_options(worker)
    add_options(command("send", send, "Send a record to a topic, or to an @agent; prints its position."))
    command("agents", _agents, "List the agents.")
    command("tables", _tables, "List the tables.")
    command("models", _models, "List the record classes.")
    command("explain", _explain, "Show the topology: which agents are spread, and why others are not.")
    command("reset", _reset, "Reset the offsets of the app and delete all its tables; its topics are kept.")
    for name, own in commands_of(app).items():
        command(name, _nothing, own.get_short_help_str(SHORT))
    return parser


def _web_options(worker: argparse.ArgumentParser) -> None:
    worker.add_argument("-p", "--web-port", type=int, help="the port of the pages; 0 for any free port")
    worker.add_argument(
        "-b", "--web-bind", "--web-host", help="the address to listen on; access from other machines needs tokens"
    )
    worker.add_argument(
        "--web-tokens", type=Path, metavar="FILE", help="access tokens and their permissions: a tokens.toml"
    )
    worker.add_argument(
        "--web-cors",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="an origin whose web pages may call this server",
    )
    worker.add_argument("--web-tls-cert", type=Path, metavar="FILE", help="serve HTTPS with this certificate (PEM)")
    worker.add_argument("--web-tls-key", type=Path, metavar="FILE", help="the private key of the certificate (PEM)")
    worker.add_argument(
        "--web-allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which clients call this server; others are rejected",
    )
    worker.add_argument("--web-audit-log", type=Path, metavar="FILE", help="append a line for each change by a client")
    worker.add_argument("--without-web", action="store_true", help="do not serve pages")
    worker.add_argument("--with-web", dest="without_web", action="store_false", help=argparse.SUPPRESS)


def _worker(app: App, parsed: argparse.Namespace) -> None:
    from potok.monitoring.monitor import Monitor
    from potok.runtime.monitoring.query_monitor import ProgramMonitor
    from potok.runtime.queries.query import Query
    from potok.server.operations.serve_metrics import served_metrics
    from potok.spark.run import wait_for

    write_logs(parsed.loglevel)
    set_up_logs("", parsed.log_format or app.settings().log_format)
    waits = "; Spark takes some seconds to start" if app.agents or app.steps() else ""
    _say(f'app "{app.id}" starts on {app.settings().broker}{waits}')
    watched = ProgramMonitor(Monitor(), app.log(), app.settings(), app.id)
    with served_metrics(watched.monitor, parsed.metrics, _say), _served(app, parsed, watched.monitor):
        query = started(app, until_end=parsed.until_end)
        if isinstance(query, Query):
            watched.started(query)
        with app.statements.at_work(until_end=parsed.until_end), Services(app, app.timed):
            _say(f'app "{app.id}" runs{_describe(app)}; Ctrl-C stops it')
            wait_for(query)
    _say(f'app "{app.id}" has {"read all records" if parsed.until_end else "stopped"}')


def _say(text: str) -> None:
    """Print a message, whatever the log level."""
    if writes_json():
        COMMANDS.info(text)
        return
    print(text, file=sys.stderr, flush=True)


def _describe(app: App) -> str:
    """Return the number of running agents, tables and so on, as text."""
    timers = sum(timed.wait_s is not None for timed in app.timed)
    tasks = len(app.timed) - timers
    counts = {"agent": len(app.agents), "table": len(app.tables), "timer": timers, "task": tasks}
    counted = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts.items() if count)
    return f" ({counted})" if counted else ""


@contextmanager
def _served(app: App, parsed: argparse.Namespace, monitor: Monitor) -> Iterator[None]:
    if parsed.without_web or not app.options.get("web_enabled", True):
        yield
        return
    from potok.faust.pages.hosted import hosted  # loads the server

    protection = Protection(
        parsed.web_tokens,
        parsed.web_tls_cert,
        parsed.web_tls_key,
        tuple(parsed.web_cors),
        tuple(parsed.web_allowed_host),
        parsed.web_audit_log,
    )
    with hosted(app, host=parsed.web_bind, port=parsed.web_port, protection=protection, monitor=monitor) as server:
        if server is not None:
            _say(f"pages of {app.id}: {server.url}")
        yield


def _agents(app: App, parsed: argparse.Namespace) -> None:
    rows = [
        {"name": f"@{agent.name}", "topic": ", ".join(agent.topic.names), "help": agent.help}
        for agent in app.agents.values()
    ]
    _show(rows, as_json=parsed.json)


def _tables(app: App, parsed: argparse.Namespace) -> None:
    rows = [
        {
            "name": table.name,
            "windows": "" if table.windowed is None else str(table.windowed.window),
            "help": table.help,
        }
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
    from potok.runtime.operations.reset_offsets import forget

    forget(app.log(), app.id)
    where = "from the first record" if app.start_at == "earliest" else "from their end"
    print(f'app "{app.id}" was reset: its tables are empty, and it reads its topics {where}')


def _own(app: App, given: list[str]) -> bool:
    """Run a command of the program, if it is one."""
    named = [text for text in given if text != "--json"]
    own = commands_of(app).get(named[0]) if named else None
    if own is None:
        return False
    at = given.index(named[0])
    carry_out(own, given[at + 1 :], as_json=at > 0)
    return True


def _nothing(app: App, parsed: argparse.Namespace) -> None:
    """Accept the arguments of a program's command: this parser only lists it."""


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
