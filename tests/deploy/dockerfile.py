"""Execute the instructions of a Dockerfile without an engine: each stage in a directory, in a clean environment."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

PATHS = ("/source", "/dist", "/opt/potok", "/data", "/usr/local/lib/potok", "/var/lib/potok")
"""Directories of the image, which are below the directory of the stage here."""

SYSTEM = re.compile(r"\b(groupadd|useradd)\b")
"""Steps that change the system, which are not executed."""


@dataclass
class Stage:
    """A stage: where its files are, and the settings so far."""

    root: Path
    workdir: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    user: str = ""
    command: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)

    def path(self, inside: str) -> Path:
        return self.root / inside.lstrip("/")

    def localized(self, text: str) -> str:
        """Return a text with the directories of the image replaced."""
        for path in PATHS:
            text = re.sub(rf"(?<![\w/.]){re.escape(path)}(?![\w])", str(self.path(path)), text)
        return text


class Build:
    """Executes the stages of a Dockerfile in order; `executed` and `skipped` are the commands of RUN."""

    def __init__(self, dockerfile: Path, context: Path, root: Path, **arguments: str) -> None:
        self._context, self._root, self._arguments = context, root, arguments
        self._ignored = _ignore_rules(context / ".dockerignore")
        self.stages: dict[str, Stage] = {}
        self.executed: list[str] = []
        self.skipped: list[str] = []
        self._stage, self._args = Stage(root), dict[str, str]()
        for keyword, rest in instructions(dockerfile.read_text()):
            getattr(self, f"_{keyword.lower()}")(rest)
        self.image = self._stage

    def environment(self, stage: Stage) -> dict[str, str]:
        """Return a clean environment: nothing of this process but the cache of pip, and a `python`."""
        own = self._root / "bin"
        if not own.exists():
            own.mkdir(parents=True)
            (own / "python").symlink_to(Path(sys.executable).resolve())
        home = self._root / "home"
        home.mkdir(exist_ok=True)
        cache = subprocess.run(
            [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True
        ).stdout.strip()
        base = {"PATH": f"{own}:/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "PIP_CACHE_DIR": cache}
        given = {name: stage.localized(value) for name, value in stage.env.items()}
        if "PATH" in given:
            given["PATH"] = f"{given['PATH']}:{own}"
        return {**base, **self._args, **given}

    def _from(self, rest: str) -> None:
        name = rest.split(" AS ")[1] if " AS " in rest else "image"
        self._args = {}
        self._stage = self.stages[name] = Stage(self._root / name)
        self._stage.root.mkdir(parents=True)

    def _arg(self, rest: str) -> None:
        name, _, default = rest.partition("=")
        self._args[name] = self._arguments.get(name, default)

    def _env(self, rest: str) -> None:
        self._stage.env |= dict(part.split("=", 1) for part in shlex.split(rest))

    def _workdir(self, rest: str) -> None:
        self._stage.workdir = rest
        self._stage.path(rest).mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        words = rest.split()
        source = self._context
        if words[0].startswith("--from="):
            source = self.stages[words.pop(0).removeprefix("--from=")].root
        *names, to = words
        target = self._stage.path(to if to.startswith("/") else f"{self._stage.workdir}/{to}")
        for name in names:
            found = source / name.lstrip("/")
            if source == self._context and not self._is_sent(Path(name)):
                raise FileNotFoundError(f"{name} is excluded by .dockerignore")
            if found.is_dir() and source != self._context:
                # A virtual environment cannot be copied to another path; in the image its path stays the same.
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(found)
            elif found.is_dir():
                shutil.copytree(found, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(found, target / found.name if to.endswith("/") else target)

    def _run(self, rest: str) -> None:
        if SYSTEM.search(rest):
            self.skipped.append(rest)
            return
        stage = self._stage
        command = stage.localized(rest)
        environment = self.environment(stage)
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=stage.path(stage.workdir),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        self.executed.append(rest)

    def _user(self, rest: str) -> None:
        self._stage.user = rest

    def _cmd(self, rest: str) -> None:
        self._stage.command = json.loads(rest)

    def _entrypoint(self, rest: str) -> None:
        self._stage.entrypoint = json.loads(rest)

    def _healthcheck(self, rest: str) -> None:
        self._stage.healthcheck = json.loads(rest.partition("CMD ")[2])

    def _volume(self, rest: str) -> None:
        self._stage.path(rest).mkdir(parents=True, exist_ok=True)

    def _expose(self, rest: str) -> None:
        assert rest.isdigit()

    def _is_sent(self, path: Path) -> bool:
        """Whether the builder gets a path: the last rule that matches it, or a parent, decides."""
        sent = True
        for pattern, keeps in self._ignored:
            if any(fnmatch(str(part), pattern) for part in (path, *path.parents) if part != Path(".")):
                sent = keeps
        return sent


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield keyword and arguments of each instruction, with continued lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        keyword, _, rest = " ".join(line.split()).partition(" ")
        yield keyword, rest


def _ignore_rules(path: Path) -> Sequence[tuple[str, bool]]:
    lines = [line.strip() for line in path.read_text().splitlines()]
    return [(line.removeprefix("!"), line.startswith("!")) for line in lines if line and not line.startswith("#")]


def as_nobody(command: Sequence[str]) -> list[str] | None:
    """Return a command that runs without being root; None if this machine cannot do that."""
    if os.getuid() != 0:
        return list(command)
    ids = ["unshare", "--user", "--map-user=65534", "--map-group=65534"]
    try:
        works = subprocess.run([*ids, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    return [*ids, *command] if works else None
