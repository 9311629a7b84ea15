"""Show a running query: a live panel on a terminal, lines in a file, JSON for scripts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from potok.cli.output import counted, note, print_json, requests_text, show_bytes
from potok.cli.queries.diff import print_changes
from potok.cli.queries.terminal import CapturedOutput, silent_keys, terminal_stream
from potok.duration import show_ms

if TYPE_CHECKING:
    from potok.topology.compare import Change

REFRESHES_PER_SECOND = 4
LINE_EVERY_MS = 5_000
OBJECT_EVERY_MS = 1_000

Snapshot = Mapping[str, Any]
"""The current figures of a query, from `potok.server.figures.query_feed`; batch figures start with the first batch."""

_COLOURS = {"running": "green", "stopping": "yellow", "waiting": "yellow", "stopped": "dim", "failed": "red"}
_ENDED = ("stopped", "failed")
_LEFT_OUT = ("error", "recent_dead_letters", "steps", "panels")
"""Fields that only the web page shows."""


class Display(Protocol):
    """Display of `potok run` while the query starts, runs and ends."""

    def changes(self, query: str, changes: Sequence[Change]) -> None: ...

    @contextmanager
    def live(self) -> Iterator[None]:
        """Own the terminal while the query starts and runs."""
        ...

    @contextmanager
    def starting(self) -> Iterator[None]: ...

    @contextmanager
    def running(self) -> Iterator[None]: ...

    def update(self, snapshot: Snapshot) -> None:
        """Called several times a second."""
        ...

    def stopping(self, signal: str, within_ms: int) -> None:
        """Called after the signal that asks to stop at the end of the batch."""
        ...

    def end(self, summary: Mapping[str, Any]) -> None: ...


class Lines:
    """Print a line every few seconds if something has changed."""

    def __init__(self) -> None:
        self._last_report: tuple[int, int] = (0, -1)

    def changes(self, query: str, changes: Sequence[Change]) -> None:
        if changes:
            note(f'query "{query}" has changed since its last run:')
            print_changes(changes)

    @contextmanager
    def live(self) -> Iterator[None]:
        yield

    @contextmanager
    def starting(self) -> Iterator[None]:
        note("starting Spark")
        yield
        note("running; Ctrl-C stops at the end of a batch")

    @contextmanager
    def running(self) -> Iterator[None]:
        yield

    def update(self, snapshot: Snapshot) -> None:
        if _is_due(snapshot, self._last_report, LINE_EVERY_MS):
            self._last_report = (snapshot["at"], snapshot["batch"])
            print(as_line(snapshot), flush=True)

    def stopping(self, signal: str, within_ms: int) -> None:
        within = f", within {show_ms(within_ms)}" if within_ms else ""
        note(f"{signal}: stopping at the end of the batch{within}")

    def end(self, summary: Mapping[str, Any]) -> None:
        note(summary_text(summary))


class Objects(Lines):
    """Print one JSON object per line; `event` is changed, progress, stopping or ended."""

    def changes(self, query: str, changes: Sequence[Change]) -> None:
        for change in changes:
            self._print("changed", {"query": query, "step": change.step, "what": change.what, "fits": change.fits})

    @contextmanager
    def starting(self) -> Iterator[None]:
        yield

    def update(self, snapshot: Snapshot) -> None:
        if _is_due(snapshot, self._last_report, OBJECT_EVERY_MS):
            self._last_report = (snapshot["at"], snapshot["batch"])
            self._print("progress", {name: snapshot[name] for name in snapshot if name not in _LEFT_OUT})

    def stopping(self, signal: str, within_ms: int) -> None:
        self._print("stopping", {"signal": signal, "within_ms": within_ms})

    def end(self, summary: Mapping[str, Any]) -> None:
        self._print("ended", summary)

    def _print(self, event: str, values: Mapping[str, Any]) -> None:
        print_json({"event": event, **values})
        print(end="", flush=True)


class Screen(Lines):
    """A live panel below the output of the program."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__()
        self._console = console or Console(highlight=False)
        self._live: Live | None = None
        self._captured: CapturedOutput | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        with terminal_stream() as terminal, silent_keys():
            # Rich takes the size from the standard streams; with stdin redirected, none of them is the terminal.
            size = None if sys.stdin and sys.stdin.isatty() else os.get_terminal_size(terminal.fileno())
            width, height = (None, None) if size is None else size
            self._console = Console(file=terminal, highlight=False, width=width, height=height)
            with CapturedOutput(self._print_above) as self._captured:
                yield

    def _print_above(self, line: str) -> None:
        self._console.print(Text.from_ansi(line), soft_wrap=True)

    @contextmanager
    def starting(self) -> Iterator[None]:
        with self._console.status("starting Spark"):
            yield

    @contextmanager
    def running(self) -> Iterator[None]:
        # `shown` passes on all output in order, so Live must not redirect sys.stdout.
        live = Live(
            console=self._console,
            refresh_per_second=REFRESHES_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with live as self._live:
            try:
                yield
            finally:
                if self._captured is not None:
                    self._captured.drain()

    def stopping(self, signal: str, within_ms: int) -> None:
        """The panel shows it."""

    def update(self, snapshot: Snapshot) -> None:
        if self._live is not None:
            self._live.update(panel(snapshot))


def panel(snapshot: Snapshot) -> Panel:
    state = str(snapshot["state"])
    colour = _COLOURS.get(state, "cyan")
    uptime = show_time(snapshot["uptime_ms"]) if "uptime_ms" in snapshot else ""
    foot = "stopping at the end of the batch" if state == "stopping" else "" if state in _ENDED else "Ctrl-C stops"
    body = _grid(snapshot) if snapshot.get("batch") else _before_the_first_batch(state)
    state_text = f"{state}, idle" if snapshot.get("idle") else state
    if state == "waiting":
        foot = f"waiting to retry: {snapshot['error']}"
    title = f"[bold]{escape(str(snapshot['query']))}[/] [{colour}]{state_text}[/] {uptime}".strip()
    return Panel(
        body, title=title, title_align="left", subtitle=escape(foot) or None, subtitle_align="left", border_style=colour
    )


def _before_the_first_batch(state: str) -> str:
    if state in _ENDED:
        return "[dim]no batch ran[/]"
    return f"[dim]{'waiting for records' if state == 'running' else 'waiting for the first batch'}[/]"


def _grid(snapshot: Snapshot) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(justify="right")
    grid.add_column()
    grid.add_row("in", show_rate(snapshot["rate_in"]), f"{snapshot['total_in']:,} in all")
    grid.add_row("out", show_rate(snapshot["rate_out"]), f"{snapshot['total_out']:,} in all")
    grid.add_row("lag", f"{snapshot['lag']:,}", "records not yet read")
    grid.add_row("batch", f"{snapshot['batch_ms']:,} ms", f"number {snapshot['batch']:,}")
    grid.add_row("state", show_bytes(snapshot["state_bytes"]), escape(_keys(snapshot)))
    if any(snapshot.get("object_requests", {}).values()):
        grid.add_row("requests", "", escape(requests_text(snapshot["object_requests"])))
    count = snapshot["dead_letters"]
    grid.add_row("dead letters", f"[yellow]{count:,}[/]" if count else "0", escape(_reasons(snapshot)))
    return grid


def _keys(snapshot: Snapshot) -> str:
    tables = ", ".join(f"{table} {keys:,}" for table, keys in sorted(snapshot["tables"].items()))
    return f"{snapshot['state_keys']:,} keys{f' ({tables})' if tables else ''}"


def _reasons(snapshot: Snapshot) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(snapshot["dead_letters_by_reason"].items()))


def as_line(snapshot: Snapshot) -> str:
    dead_letters = counted(snapshot["dead_letters"], "dead letter")
    return (
        f"batch {snapshot['batch']}: in {snapshot['total_in']:,} ({show_rate(snapshot['rate_in'])}), "
        f"out {snapshot['total_out']:,} ({show_rate(snapshot['rate_out'])}), "
        f"lag {snapshot['lag']:,}, {snapshot['batch_ms']:,} ms, state {show_bytes(snapshot['state_bytes'])}, "
        + (f"{dead_letters} ({_reasons(snapshot)})" if snapshot["dead_letters"] else dead_letters)
    )


def summary_text(summary: Mapping[str, Any]) -> str:
    dead_letters = summary["dead_letters_by_reason"]
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dead_letters.items()))
    return (
        f'query "{summary["query"]}" {summary["state"]} after {show_time(summary["uptime_ms"])}: '
        f"{counted(summary['records_in'], 'record')} in, {summary['records_out']:,} out, "
        f"{counted(summary['batches'], 'batch', 'batches')}, {counted(sum(dead_letters.values()), 'dead letter')}"
        + (f" ({reasons})" if reasons else "")
    )


def show_rate(rate: float) -> str:
    """Render a rate; small rates keep a digit: 0.4 is "0.4/s"."""
    if 0 < rate < 0.1:
        return "<0.1/s"
    return f"{rate:,.1f}/s" if 0 < rate < 9.95 else f"{rate:,.0f}/s"


def show_time(ms: int) -> str:
    """Render a duration: 3723000 is "1:02:03"."""
    minutes, seconds = divmod(ms // 1000, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _is_due(snapshot: Snapshot, last: tuple[int, int], every_ms: int) -> bool:
    """Whether there was a batch since, or the query has just started to wait for records."""
    if snapshot["state"] == "starting":
        return False
    return snapshot.get("batch") not in (None, last[1]) and snapshot["at"] - last[0] >= every_ms
