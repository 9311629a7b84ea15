"""`potok sql`: execute statements from a prompt, a file, the command line or a pipe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from potok.cli.options import Broker, Functions, Json, command_app, settings_of
from potok.cli.output import note

if TYPE_CHECKING:
    from potok.cli.prompt.targets.target import Target
    from potok.settings import Settings

app = command_app()

STDIN = "<stdin>"


@app.command()
def sql(
    context: typer.Context,
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Execute the statements of a file; stop at the first error."),
    ] = None,
    execute: Annotated[
        list[str] | None, typer.Option("--execute", "-e", metavar="SQL", help="Execute these statements.")
    ] = None,
    check: Annotated[
        list[Path] | None,
        typer.Option("--check", metavar="FILE", help="Report all errors of a script without executing it."),
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Send statements to a server, such as http://localhost:8088.")
    ] = None,
    token: Annotated[str | None, typer.Option(envvar="POTOK_TOKEN", help="Token for the server (POTOK_TOKEN).")] = None,
    define: Annotated[
        list[str] | None, typer.Option("--define", "-d", metavar="NAME=VALUE", help="Define a variable: ${NAME}.")
    ] = None,
    functions: Functions = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Execute statements from a prompt, from -f and -e, or from a pipe.

    Without --server, this process executes them, and queries run as long as it does. A script waits for its queries
    before each pull query and at its end. With --json, each line is the result of one statement or a row of a push
    query. --check exits with 1 if a script has errors.
    """
    settings = settings_of(context, broker)
    _load(functions or [], server)
    if check:
        if server is not None:
            raise typer.BadParameter(
                "--check works on a local log: use --broker instead of --server", param_hint="--check"
            )
        from potok.cli.prompt.input.checking import check_scripts

        raise typer.Exit(1 if check_scripts(settings, [_read(path) for path in check], as_json=as_json) else 0)
    scripts = [_read(path) for path in file or ()] + [("", _closed(text)) for text in execute or ()]
    if not scripts and not sys.stdin.isatty():
        scripts = [(STDIN, sys.stdin.read())]
    variables = dict(map(_pair, define or ()))
    target = _target(settings, server, token)
    try:
        target.variables |= variables
        _run(target, scripts, as_json=as_json)
    finally:
        target.close()


def _load(functions: list[str], server: str | None) -> None:
    if functions and server is not None:
        raise typer.BadParameter("the server loads them: potok serve --functions MODULE", param_hint="--functions")
    if functions:
        from potok.cli.queries.program import load_functions

        load_functions(functions)


def _run(target: Target, scripts: list[tuple[str, str]], *, as_json: bool) -> None:
    from potok.cli.prompt.display import Drawn, Objects
    from potok.cli.prompt.script import Script

    script = Script(target, Objects() if as_json else Drawn(), settles=bool(scripts))
    for name, text in scripts:
        script.run(text, name)
    if scripts:
        script.settle()
        return
    from potok.cli.prompt.input.keyboard import Keyboard, history_file

    note(f"{target.status()}\ntype help for help, exit to quit")
    target.start()
    Keyboard(target, script, history=history_file()).run()
    script.report_dead_letters()


def _target(settings: Settings, server: str | None, token: str | None) -> Target:
    if server is not None:
        from potok.cli.prompt.targets.remote import Remote

        return Remote(server, token)
    from potok.cli.prompt.targets.local import Here
    from potok.log.open import log_exists

    if not log_exists(settings.broker):
        note(f"created a log in {settings.broker}")
    return Here.opened(settings)


def _read(path: Path) -> tuple[str, str]:
    from potok.cli.prompt.script import read_text

    return str(path), read_text(path)


def _closed(text: str) -> str:
    """Append the last `;`, which is optional on the command line."""
    return text if text.rstrip().endswith(";") or not text.strip() else f"{text};"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise typer.BadParameter(f'"{text}" is not NAME=VALUE', param_hint="--define")
    return name, value
