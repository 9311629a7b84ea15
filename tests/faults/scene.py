"""What a row works with: a directory, a source of chance, servers, and programs that it starts."""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.drive import Driver, Ended, TooLong, end_all, wait_until
from tests.faults.gate import Gate
from tests.faults.servers import Servers

LONGEST_S = 600.0
"""No row takes longer, whatever hangs."""


class Scene:
    """One row at work. `random` is all the chance there is, so that a seed tells a run."""

    def __init__(self, seed: int, servers: Servers) -> None:
        self.random = Random(seed)
        self.servers = servers
        self.name = f"f{uuid.uuid4().hex[:8]}"
        self.directory = Path(tempfile.mkdtemp(prefix="potok-fault-"))
        self._end = time.monotonic() + LONGEST_S
        self._number = 0

    @property
    def left_s(self) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TooLong(f"the row took longer than {LONGEST_S:.0f} s")
        return left

    def start(
        self,
        build: str,
        arguments: Mapping[str, Any],
        run: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
        *,
        spread: bool = False,
    ) -> Driver:
        """Start a program; `spread` makes several tasks of every batch, however small it is."""
        self._number += 1
        log = self.directory / f"program-{self._number}.log"
        reported = {"build": build, "arguments": dict(arguments), "run": dict(run), "spread": spread}
        return Driver(self.name, log, reported, environment or {})

    def ended(self, driver: Driver) -> Ended:
        return driver.wait(self.left_s)

    def place(self, name: str) -> Path:
        """A directory that nothing else uses."""
        self._number += 1
        path = self.directory / f"{name}-{self._number}"
        path.mkdir()
        return path

    def at_gate(self, gate: Gate, driver: Driver) -> int:
        """Wait until a task of a program stands at the gate; its process."""

        def holder() -> int | None:
            found = gate.holder()
            assert found or driver.is_running(), f"the program ended before the fault: {driver.said[-2_000:]}"
            return found

        return int(wait_until(holder, "a task at the gate", self.left_s))

    def wait_until(self, happened: Any, what: str) -> Any:
        return wait_until(happened, what, self.left_s)

    def close(self) -> None:
        end_all(self.name)
        shutil.rmtree(self.directory, ignore_errors=True)
