"""`potok settings`: every setting with its value and its origin."""

from __future__ import annotations

import typer

from potok.cli.options import Broker, Json, broker_given, command_app
from potok.cli.output import note, print_json, print_table
from potok.settings import PREFIX, Settings, public_name, settings_file

app = command_app()

DEFAULT = "default"


@app.command()
def settings(context: typer.Context, broker: Broker = None, as_json: Json = False) -> None:
    """Show every setting with its value and its origin: a default, potok.toml, the environment or an argument.

    Secrets are not shown. The file in use is in this directory or in the nearest parent that has one.
    """
    path = settings_file()
    chosen, origins = Settings.with_origins(broker=broker_given(context, broker))
    rows = []
    for rendered, text in chosen.printable().items():
        name, value = public_name(rendered, text)
        origin = origins.get(rendered, DEFAULT)
        if origin == "the environment":
            origin = _variable(name)
        rows.append((name, value, "argument" if origin == "the arguments" else origin))
    if as_json:
        for name, value, origin in rows:
            print_json({"name": name, "value": value, "origin": origin})
        return
    print_table(("setting", "value", "origin"), rows)
    note(f"file: {path.absolute()}" if path is not None else "file: none; no potok.toml here or in a parent directory")


def _variable(name: str) -> str:
    return PREFIX + name.upper().replace(".", "_")
