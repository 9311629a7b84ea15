"""`potok gateway`: receive webhooks, datagrams, lines and files into topics."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from potok.cli.options import Broker, Json, LogFormat, Metrics, command_app, opened_log, settings_of
from potok.cli.output import console, counted, note, print_json
from potok.cli.queries.running import Interruption
from potok.server.operations.serve_metrics import served_metrics

if TYPE_CHECKING:
    from rich.table import Table

    from potok.sources.gateway import Gateway, ListenerStatus

app = command_app()

LOOK_S = 0.5
REPORT_S = 10.0


@app.command()
def gateway(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file with listeners.")],
    check: Annotated[bool, typer.Option("--check", help="Check the file without starting.")] = False,
    metrics: Metrics = None,
    log_format: LogFormat = None,  # noqa: ARG001 - its callback keeps it
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Receive input that cannot be replayed into topics until Ctrl-C or SIGTERM.

    Senders are acknowledged once their records are in the log. Losses are counted by reason.
    With --json, each line is an object whose `event` is listening, status or stopped.
    """
    from potok.monitoring.monitor import Monitor
    from potok.records.garbage_collection import spare_imports
    from potok.sources.config import load_gateway
    from potok.sources.gateway import Gateway
    from potok.sources.monitoring import monitor_listeners

    found = load_gateway(file)
    if check:
        note(f"{file}: {counted(len(found.listeners), 'listener')}, no errors found")
        return
    url = broker or found.broker
    with Interruption(bounded=False) as interruption, opened_log(context, url, create=True) as log:
        timeout_s = settings_of(context).stop_timeout_ms / 1000 or threading.TIMEOUT_MAX
        running, monitor = Gateway(log, found.listeners, stop_timeout_s=timeout_s), Monitor()
        monitor_listeners(monitor, running.status)
        with served_metrics(monitor, metrics, note), running:
            interruption.wait_for_the_batch()
            spare_imports()
            _announce(running, as_json=as_json)
            _watch(running, interruption, as_json=as_json)
            if not as_json:
                note("stopping: appending buffered records")
    _end(running, as_json=as_json)


def _announce(running: Gateway, *, as_json: bool) -> None:
    from potok.sources.gateway import status_as_object

    for each in running.status():
        if as_json:
            print_json({"event": "listening", **status_as_object(each)})
        else:
            place = "" if each.address is None else f" on {each.address}"
            note(f"{each.name}: {each.kind}{place}, into topic {each.topic}")


def _watch(running: Gateway, interruption: Interruption, *, as_json: bool) -> None:
    """Show the counts until the user interrupts: live on a terminal, as lines elsewhere."""
    from potok.sources.gateway import status_as_object

    if as_json or not console(stderr=True).is_terminal:
        while not interruption.asked.wait(REPORT_S):
            for each in running.status():
                print_json({"event": "status", **status_as_object(each)}) if as_json else note(_line(each))
        return
    from rich.live import Live

    with Live(_table(running), console=console(stderr=True), auto_refresh=False) as live:
        while not interruption.asked.wait(LOOK_S):
            live.update(_table(running), refresh=True)


def _end(running: Gateway, *, as_json: bool) -> None:
    from potok.sources.gateway import status_as_object

    for each in running.status():
        if as_json:
            print_json({"event": "stopped", **status_as_object(each)})
        else:
            note(_line(each))


def _table(running: Gateway) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="dim")
    for name in ("listener", "received", "landed", "buffered", "lost", "refused", "problem"):
        table.add_column(name, justify="left" if name in ("listener", "problem") else "right")
    for each in running.status():
        counts = each.counts
        table.add_row(
            each.name,
            f"{counts.received:,}",
            f"{counts.landed:,}",
            f"{counts.buffered:,}",
            f"{sum(counts.lost.values()) + (counts.kernel_dropped or 0) + (counts.missing or 0):,}",
            f"{sum(counts.refused.values()):,}",
            each.problem or "",
        )
    return table


def _line(status: ListenerStatus) -> str:
    counts = status.counts
    parts = [f"received {counts.received:,}", f"landed {counts.landed:,}", f"buffered {counts.buffered:,}"]
    parts += [f"duplicates {counts.duplicates:,}"] if counts.duplicates else []
    parts += [f"lost ({reason}) {count:,}" for reason, count in counts.lost.items()]
    parts += [f"refused ({reason}) {count:,}" for reason, count in counts.refused.items()]
    parts += [f"dropped by the kernel {counts.kernel_dropped:,}"] if counts.kernel_dropped else []
    parts += [f"missing {counts.missing:,}"] if counts.missing else []
    parts += [status.problem] if status.problem else []
    return f"{status.name}: {', '.join(parts)}"
