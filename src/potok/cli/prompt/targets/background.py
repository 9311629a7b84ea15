"""Run a function in a background thread. Imports nothing else, so that a prompt to a server starts quickly."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import TypeVar

T = TypeVar("T")


def in_background(work: Callable[[], T]) -> Future[T]:
    """The result of a function that runs in a daemon thread."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except InvalidStateError:
            raise
        except BaseException as error:  # noqa: BLE001 - it is raised again by whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=run, name="potok-prompt", daemon=True).start()
    return future
