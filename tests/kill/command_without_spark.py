"""`without_spark` as a command of `potok`, so that it ends as every command does."""

from __future__ import annotations

import sys

import typer

from potok.cli.main import COMMANDS, main
from tests.kill import without_spark

app = typer.Typer()


@app.command()
def batches(url: str, batch: int, prefix: str = typer.Argument("")) -> None:
    without_spark.main(url, batch, prefix)


if __name__ == "__main__":
    COMMANDS["batches"] = ("tests.kill.command_without_spark", "Run the batches of `orders_program`.")
    sys.argv.insert(1, "batches")
    main()
