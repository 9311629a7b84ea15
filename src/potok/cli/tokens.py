"""The commands `potok tokens add`, `list` and `remove`: the file of tokens for `--tokens`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from potok.cli.options import Json, command_app
from potok.cli.output import note, print_json, print_table
from potok.extras import need_extra

if TYPE_CHECKING:
    from potok.server.access.callers import Caller
    from potok.server.access.token_file import TokenFile

app = command_app(no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Who uses the token; the audit log shows it.")]
File = Annotated[Path, typer.Option("--file", metavar="FILE", help="The file of tokens.")]

DEFAULT = Path("tokens.toml")


@app.callback()
def tokens() -> None:
    """Add, list and remove the tokens of a file. A running server reads a changed file within a second."""
    need_extra("the tokens of a server", "server")


@app.command()
def add(
    name: Name,
    scope: Annotated[
        list[str],
        typer.Option(
            metavar="SCOPE[:PREFIX]",
            help="read, write or admin; with a prefix, only for names that begin so: read:orders-.",
        ),
    ],
    per_second: Annotated[float | None, typer.Option(min=0.01, help="Maximum requests per second.")] = None,
    file: File = DEFAULT,
    as_json: Json = False,
) -> None:
    """Make a random token, add its digest to the file, and print it: it is shown this one time only."""
    token = _file(file).add(name, scope, per_second)
    if as_json:
        print_json({"name": name, "scopes": scope, "token": token})
        return
    print(token)
    note(f'added "{name}" to {file}; the token is stored nowhere')


@app.command(name="list")
def list_(file: File = DEFAULT, as_json: Json = False) -> None:
    """List the tokens of the file: names, scopes and limits."""
    found = list(_file(file).read().values())
    if as_json:
        print_json(list(map(_row, found)))
        return
    rows = [(caller.name, " ".join(sorted(caller.scopes)), caller.per_second or "") for caller in found]
    print_table(("name", "scopes", "requests/s"), rows)


@app.command()
def remove(name: Name, file: File = DEFAULT, as_json: Json = False) -> None:
    """Remove a token from the file; running servers reject it within a second."""
    _file(file).remove(name)
    if as_json:
        print_json({"removed": name})
        return
    note(f'removed "{name}" from {file}')


def _file(path: Path) -> TokenFile:
    from potok.server.access.token_file import TokenFile

    return TokenFile(path)


def _row(caller: Caller) -> dict[str, object]:
    return {"name": caller.name, "scopes": sorted(caller.scopes), "per_second": caller.per_second}
