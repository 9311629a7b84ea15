"""The program of a running query as it is on disk, which may have changed since the query started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

from potok.statements.errors import CannotCompare

MOST_S = 60.0


class ProgramOnDisk:
    """Compares a program with the version that ran last, in a process of its own: loading it here would replace modules
    of the running one."""

    def __init__(self, program: str, broker: str) -> None:
        self.program, self._broker = program, broker
        self._comparing = threading.Lock()

    def differences(self) -> list[dict[str, Any]]:
        """Return `step`, `what` and `fits` of each change, as `potok diff --json` prints them."""
        command = [sys.executable, "-m", "potok.cli.entry", "diff", self.program, "--json"]
        # Not as an option: a URL may contain a password.
        environment = {**os.environ, "POTOK_BROKER": self._broker}
        with self._comparing:
            try:
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=False, timeout=MOST_S
                )
            except subprocess.TimeoutExpired:
                raise CannotCompare(self.program, f"it was not loaded within {MOST_S:g} seconds") from None
        try:
            found = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
        except ValueError as error:
            raise CannotCompare(self.program, "it prints while it is loaded") from error
        if done.returncode and all(change.get("fits", True) for change in found):
            raise CannotCompare(self.program, done.stderr.strip()[-500:] or f"exit code {done.returncode}")
        return found
