"""`potok cdc`: capture the changes of databases into topics."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, LogFormat, Metrics, command_app, opened_log
from potok.cli.output import console, counted, note, print_json
from potok.cli.queries.running import Interruption
from potok.errors import SetupError
from potok.server.operations.serve_metrics import served_metrics

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from potok.log.broker import Broker as Log
    from potok.sources.cdc.runner import CaptureRunner
    from potok.topology.capture import Capture

app = command_app()

LOOK_S = 0.2
REPORT_S = 10.0


@app.command()
def cdc(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A TOML file with captures, a program with builder.cdc(), or a URL.")
    ],
    table: Annotated[list[str] | None, typer.Option("--table", help="With a URL: a table to capture.")] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Check the databases and print the statements to run there, without starting."),
    ] = False,
    reset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Delete the position of a capture: its next start takes a new snapshot."),
    ] = None,
    drop: Annotated[
        str | None, typer.Option(metavar="NAME", help="Remove a capture: its position, slot and publication.")
    ] = None,
    until_caught_up: Annotated[
        bool, typer.Option("--until-snapshot", help="Stop when all snapshots are complete.")
    ] = False,
    metrics: Metrics = None,
    log_format: LogFormat = None,  # noqa: ARG001 - its callback keeps it
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Append the changes of database tables to topics until Ctrl-C or SIGTERM, in the envelope of Debezium.

    The first start reads the existing rows while changes are streamed; later ones resume where the last one stopped.
    With --json, each line is an object whose `event` is status or stopped.
    """
    url, captures = _captures(source, table or [])
    if check:
        _check(captures)
        return
    with Interruption() as interruption, opened_log(context, broker or url, create=True) as log, ExitStack() as running:
        if reset is not None or drop is not None:
            _remove(log, _named(captures, reset or drop or ""), drop=drop is not None)
            return
        from potok.monitoring.monitor import Monitor
        from potok.records.garbage_collection import spare_imports
        from potok.sources.cdc.monitoring import monitor_captures
        from potok.sources.cdc.runner import CaptureRunner

        monitor, runners = Monitor(), list[CaptureRunner]()
        monitor_captures(monitor, lambda: runners)
        running.enter_context(served_metrics(monitor, metrics, note))
        runners += [running.enter_context(CaptureRunner(capture, log)) for capture in captures]
        interruption.wait_for_the_batch()
        spare_imports()
        if as_json or not console(stderr=True).is_terminal:
            _report(runners, interruption, as_json=as_json, until=until_caught_up)
        else:
            _show(runners, interruption, until=until_caught_up)
        for runner in runners:
            runner.stop()
            _print(runner, as_json=as_json, event="stopped")
        for runner in runners:
            if runner.error is not None:
                raise runner.error


def _captures(source: str, tables: list[str]) -> tuple[str | None, list[Capture]]:
    from potok.topology.capture import Capture

    if "://" in source:
        return None, [Capture(url=source, tables=tuple(tables))]
    if Path(source).suffix == ".toml":
        from potok.sources.cdc.config import load_captures

        found = load_captures(source)
        return found.broker, found.captures
    from potok.cli.queries.program import load_topology

    captures = list(load_topology(source).captures)
    if not captures:
        raise SetupError(f'the program "{source}" captures no database', hint='write builder.cdc("postgresql://...")')
    return None, captures


def _named(captures: list[Capture], name: str) -> Capture:
    for capture in captures:
        if capture.name == name:
            return capture
    raise SetupError(
        f'there is no capture "{name}"', hint=f"the captures are {', '.join(each.name for each in captures)}"
    )


def _check(captures: list[Capture]) -> None:
    from potok.extras import need_extra
    from potok.sources.cdc.runner import check_database

    need_extra("change data capture", "cdc")
    for capture in captures:
        check_database(capture)
        note(f"{capture.name}: {counted(len(capture.tables), 'table')}, ready to be captured")


def _remove(log: Log, capture: Capture, *, drop: bool) -> None:
    from potok.sources.cdc.runner import remove

    remove(capture, log, drop=drop)
    note(f"{capture.name}: {'removed' if drop else 'the next start takes a new snapshot'}")


def _done(runners: list[CaptureRunner], *, until: bool) -> bool:
    if any(runner.wait(0) for runner in runners):
        return True
    statuses = [runner.status() for runner in runners]
    return until and all(status.snapshot_done for status in statuses)


def _report(runners: list[CaptureRunner], interruption: Interruption, *, as_json: bool, until: bool) -> None:
    """Print the status as lines."""
    passed = 0.0
    while not interruption.asked.wait(LOOK_S) and not _done(runners, until=until):
        passed += LOOK_S
        if passed >= REPORT_S:
            passed = 0.0
            for runner in runners:
                _print(runner, as_json=as_json, event="status")


def _print(runner: CaptureRunner, *, as_json: bool, event: str) -> None:
    status = runner.status()
    if as_json:
        print_json({"event": event, "name": runner.capture.name, **asdict(status)})
        return
    parts = [status.state, f"{status.changes:,} changes"]
    parts += [f"snapshot of {name}: {each.rows:,} rows" for name, each in status.snapshots.items() if not each.done]
    parts += [status.problem] if status.problem and runner.error is None else []
    note(f"{runner.capture.name}: {', '.join(parts)}")


def _show(runners: list[CaptureRunner], interruption: Interruption, *, until: bool) -> None:
    """Show a bar for each snapshot, and a line for each stream."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[text]}")]
    with Progress(*columns, TimeRemainingColumn(), console=console(stderr=True), transient=True) as progress:
        bars: dict[str, TaskID] = {}
        while not interruption.asked.wait(LOOK_S) and not _done(runners, until=until):
            for runner in runners:
                _update(progress, bars, runner)


def _update(progress: Progress, bars: dict[str, TaskID], runner: CaptureRunner) -> None:
    status, name = runner.status(), runner.capture.name
    for table, each in status.snapshots.items():
        text = f"{each.rows:,} rows"
        values: dict[str, Any] = {"completed": each.rows, "total": max(each.total, each.rows, 1), "text": text}
        if f"{name}.{table}" not in bars:
            bars[f"{name}.{table}"] = progress.add_task(f"{name}.{table}", **values)
        progress.update(bars[f"{name}.{table}"], **values)
    lag = "" if status.lag_bytes is None else f", {status.lag_bytes:,} bytes behind"
    text = status.problem or f"{status.state}, {status.changes:,} changes{lag}"
    if name not in bars:
        bars[name] = progress.add_task(name, total=None, text=text)
    progress.update(bars[name], text=text)
