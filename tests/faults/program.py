"""A program in a process of its own, as a user runs it. It is told what to build, and how to run it, in JSON."""

from __future__ import annotations

import importlib
import json
import sys

import potok
from potok.errors import PotokError
from potok.runtime.batches import batch


def main(words: str) -> None:
    told = json.loads(words)
    if told["spread"]:
        batch.SMALL_BATCH = -1
    module, _, function = told["build"].partition(":")
    program = getattr(importlib.import_module(module), function)(**told["arguments"])
    try:
        potok.run(program, until_end=True, **told["run"])
    except PotokError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main(sys.argv[1])
