"""`potok demo`: process a live stream of orders on Spark and show it on a web page."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from potok.cli.options import command_app
from potok.cli.output import note
from potok.extras import need_extra

app = command_app()


@app.command()
def demo(
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the web page; default 8400, or the next free one.")
    ] = None,
    rate: Annotated[float, typer.Option(min=1, help="Orders per second.")] = 3000,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Stop after this many seconds; default: at Ctrl-C.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the data in this directory; default: delete it at the end.")
    ] = None,
) -> None:
    """Run the demo: process a live stream of orders and open its web page."""
    need_extra("potok demo", "server")
    from potok.demo.play import play

    with contextlib.ExitStack() as stack:
        directory = data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="potok-demo-")))
        play(f"file:{directory}", port=port, rate=rate, seconds=seconds, open_browser=browser, say=note)
