"""Damage a file in one way, and check the consequences in a child process."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from potok.errors import PotokError

TIMEOUT_S = 60
PAGE = 4096


def damage(random: random.Random, path: Path) -> str:
    """Change a file in one of the ways in which disks and people do; return which."""
    size = path.stat().st_size
    how = random.choice(("bit", "bit", "bit", "byte", "burst", "cut", "emptied", "zeroed", "copied", "longer"))
    at = random.randrange(size) if size else 0
    with path.open("r+b") as file:
        if how == "longer" or size == 0:
            file.seek(0, 2)
            file.write(random.randbytes(random.choice((1, 100, PAGE, 3 * PAGE))))
        elif how in ("cut", "emptied"):
            file.truncate(at if how == "cut" else 0)
        elif how == "zeroed":
            at = at // PAGE * PAGE if random.random() < 0.8 else at // 512 * 512
            file.seek(at)
            file.write(bytes(min(PAGE, size - at)))
        elif how == "copied":
            at = at // PAGE * PAGE
            file.seek(random.randrange(size) // PAGE * PAGE)
            data = file.read(min(PAGE, size - at))
            file.seek(at)
            file.write(data)
        else:
            length = {"bit": 1, "byte": 1, "burst": random.randint(2, 64)}[how]
            file.seek(at)
            old = file.read(length)
            new = random.randbytes(len(old)) if how != "bit" else bytes([old[0] ^ 1 << random.randrange(8)])
            file.seek(at)
            file.write(new)
    return f"{how} at {at} of {size} in {path}"


def in_child(work: Callable[[], str], timeout_s: float = TIMEOUT_S) -> str:
    """Return what `work` returns, or how its process ended: `killed by signal 7`, `hangs`, or the traceback."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _be_child(work, reading, writing)
    os.close(writing)
    said = b""
    deadline = time.monotonic() + timeout_s
    try:
        while select.select([reading], [], [], max(deadline - time.monotonic(), 0))[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                break
            said += part
        else:
            os.kill(child, signal.SIGKILL)
            said = b"hangs"
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and said != b"hangs":
        return f"killed by signal {os.WTERMSIG(status)} after: {said.decode()}"
    return said.decode()


def _be_child(work: Callable[[], str], reading: int, writing: int) -> None:
    os.close(reading)
    said = "nothing"
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        said = work()
    except BaseException:  # noqa: BLE001 - whatever it is, it is what the parent must know
        said = f"FAILED {traceback.format_exc()}"
    finally:
        data = said.encode()
        while data:
            data = data[os.write(writing, data) :]
        os._exit(0)


def steps(*works: tuple[str, Callable[[], object]]) -> str:
    """Run one step after the other: `right`, or the `PotokError`, for each."""
    said = []
    for name, work in works:
        try:
            work()
            said.append(f"{name}: right")
        except PotokError as error:
            said.append(f"{name}: {type(error).__name__}: {error.message if error.hint else 'FAILED to give a hint'}")
        except BaseException:  # noqa: BLE001 - reported with the step
            said.append(f"{name}: FAILED {traceback.format_exc()}")
    return "\n".join(said)


def is_bad(said: str) -> bool:
    return not said or any(word in said for word in ("FAILED", "hangs", "killed by signal"))


def files_of(directory: Path) -> list[Path]:
    return sorted(Path(root) / name for root, _, names in os.walk(directory) for name in names)


def copy(template: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(template, to)
    return to
