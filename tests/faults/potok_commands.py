"""The commands that a user types to mend something, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.faults.drive import ROOT, SCENE
from tests.faults.orders import Orders
from tests.faults.scene import Scene

PROGRAM = """
from tests.kill import orders_program

builder = orders_program.build({prefix!r})
"""


def potok(scene: Scene, *words: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("potok")), *words],
        cwd=scene.directory,
        env={**os.environ, SCENE: scene.name, "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(scene: Scene, process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=scene.left_s)
    assert process.returncode == 0, f"potok ended with {process.returncode}: {said[-2_000:]}"
    return said


def rebuild(orders: Orders) -> None:
    """Rebuild the tables next to those that are served, and swap them."""
    scene = orders.scene
    program = _program(orders)
    words = (str(program), "--broker", orders.url)
    state = {"POTOK_STATE": orders.settings.get("state", "")}
    finished(scene, potok(scene, "run", *words, "--shadow", "--until-end", **state))
    finished(scene, potok(scene, "promote", *words, **state))


def _program(orders: Orders) -> Path:
    path = orders.scene.directory / "program.py"
    path.write_text(PROGRAM.format(prefix=orders.prefix))
    return path
