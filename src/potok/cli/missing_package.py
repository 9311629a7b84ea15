"""Report a missing dependency of Potok, for example after the source was updated."""

from __future__ import annotations

import traceback
from pathlib import Path

from potok.errors import SetupError
from potok.extras import ExtraMissing, extra_of

HINT = "install Potok again: make setup in a clone, otherwise pip install --upgrade potok"

_OWN_PACKAGE = Path(__file__).parents[1]


class PackageMissing(SetupError):
    """A package that Potok imports is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f'Potok needs the Python module "{name}", which is not installed', hint=HINT)


def missing_package(error: ModuleNotFoundError) -> SetupError | None:
    """Return the error to print if a module of Potok raised it; None if the user's program did."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    is_ours = bool(frames) and Path(frames[-1].filename).is_relative_to(_OWN_PACKAGE)
    if not is_ours or not error.name:
        return None
    extra = extra_of(error.name)
    return PackageMissing(error.name) if extra is None else ExtraMissing(f'the module "{error.name}"', extra)
