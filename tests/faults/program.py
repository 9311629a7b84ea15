"""A program in a process of its own, as a user runs it. It gets what to build, and how to run it, in JSON."""

from __future__ import annotations

import importlib
import json
import sys

import potok
from potok.errors import PotokError
from potok.runtime.batches import batch


def main(words: str) -> None:
    reported = json.loads(words)
    if reported["spread"]:
        batch.SMALL_BATCH = -1
    module, _, function = reported["build"].partition(":")
    program = getattr(importlib.import_module(module), function)(**reported["arguments"])
    try:
        potok.run(program, until_end=True, **reported["run"])
    except PotokError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main(sys.argv[1])
