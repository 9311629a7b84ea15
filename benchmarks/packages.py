"""Interpreters with other packages in them, each in an environment of its own."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.bench import console
from potok.settings import Settings


def python_with(name: str, requirements: Path) -> str:
    """The interpreter of an environment with these packages, made on first use and kept in the cache."""
    identity = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = Settings.load().cache_path / f"{name}-{identity}"
    if not (home / "bin" / "python").exists():
        console.print(f"[dim]installing {name}[/]")
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent, prefix=f"{name}-") as draft:
            _install(Path(draft) / "made", requirements)
            (Path(draft) / "made").rename(home)
    return str(home / "bin" / "python")


def _install(home: Path, requirements: Path) -> None:
    python = str(home / "bin" / "python")
    if shutil.which("uv"):
        commands = [
            ["uv", "venv", "--quiet", "--python", sys.executable, str(home)],
            ["uv", "pip", "install", "--quiet", "--python", python, "--requirement", str(requirements)],
        ]
    else:
        commands = [
            [sys.executable, "-m", "venv", str(home)],
            [python, "-m", "pip", "install", "--quiet", "--requirement", str(requirements)],
        ]
    for command in commands:
        subprocess.run(command, check=True)
