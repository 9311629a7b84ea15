"""Starting a program, waiting for it, and killing what belongs to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
SCENE = "FAULTS_SCENE"
"""The variable by which a process is known as one of ours, wherever it was started and whoever its parent is."""

_LOOK_S = 0.02


class TooLong(AssertionError):
    """Something did not happen in time."""


def wait_until(happened: Callable[[], Any], what: str, seconds: float) -> Any:
    """What `happened` returns as soon as that is anything."""
    end = time.monotonic() + seconds
    while not (found := happened()):
        if time.monotonic() > end:
            raise TooLong(f"{what}: not within {seconds:.0f} s")
        time.sleep(_LOOK_S)
    return found


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, and what it printed."""

    code: int
    said: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    def must_be_well(self) -> Ended:
        assert self.code == 0, f"the program ended with {self.code}: {self.said[-2_000:]}"
        return self

    def must_be_killed(self) -> Ended:
        assert self.killed, f"the program was not killed but ended with {self.code}: {self.said[-2_000:]}"
        return self

    def must_say(self, *texts: str) -> Ended:
        """It ended with an error that says all this: what a user needs to know, and what to type."""
        assert self.code not in (0, -signal.SIGKILL), f"the program ended with {self.code}: {self.said[-2_000:]}"
        missing = [text for text in texts if text not in self.said]
        assert not missing, f"the error does not say {missing}: {self.said[-2_000:]}"
        return self


class Driver:
    """A running program."""

    def __init__(self, scene: str, log: Path, reported: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        """It runs in the directory of its log, and has the variables of this process besides those it is given."""
        self._log = log
        path = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), str(ROOT))))
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.program", json.dumps(reported)],
                cwd=log.parent,
                env={**os.environ, **environment, SCENE: scene, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def wait(self, seconds: float) -> Ended:
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TooLong(f"the program did not end within {seconds:.0f} s: {self.said[-2_000:]}") from None
        return Ended(code, self.said)

    def kill(self) -> Ended:
        self.process.kill()
        return Ended(self.process.wait(), self.said)

    def is_running(self) -> bool:
        return self.process.poll() is None


def processes_of(scene: str) -> list[psutil.Process]:
    """All living processes of a scene, also those whose parents are gone."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(SCENE) == scene:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def end_all(scene: str) -> None:
    """End what a row left behind: a killed driver's workers may still be at work."""
    for process in processes_of(scene):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
