"""A room imports only rooms below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from architecture.tree import ROOT, imports

FLOORS = (
    {"redact"},
    {"errors", "version"},
    {"checksum", "clock", "duration", "event_loop", "extras", "failpoint"}
    | {"java_runtime", "machine", "permissions", "program_loading", "retry_policy"},
    {"settings"},
    {"compat", "monitoring"},
    {"records"},
    {"expressions", "backends", "storage"},
    {"events"},
    {"metadata", "sinks"},
    {"topology", "state", "log"},
    {"patterns"},
    {"dsl", "sql", "operators"},
    {"snapshots"},
    {"dead_letters"},
    {"runtime"},
    {"spark"},
    {"statements"},
    {"server"},
    {"faust"},
    {"sources"},
    {"testing", "demo"},
    {"cli"},
)
"""From the bottom up. Rooms of one floor do not import each other; the package itself is above all of them."""

AS_A_USER = {"demo"}
"""Rooms that are programs such as a user would write, and may import the package by its public names."""

HEIGHT = {room: height for height, floor in enumerate(FLOORS) for room in floor}


def upward_imports(root: Path) -> list[str]:
    found = []
    for item in imports(root):
        if item.path.parts[:2] != ("src", "potok") or item.module.split(".")[0] != "potok":
            continue
        here = item.path.parts[2].removesuffix(".py")
        there = _room(item.module)
        if here in ("__init__", there) or (here in AS_A_USER and there == "__init__"):
            continue
        if here not in HEIGHT:
            found.append(f"{item.path} is in no room of the table")
        elif HEIGHT.get(there, len(FLOORS)) >= HEIGHT[here]:
            found.append(str(item))
    return found


def _room(module: str) -> str:
    """`from potok import run` names no room but the package itself."""
    room = (*module.split("."), "")[1]
    return room if room in HEIGHT else "__init__"


def test_rooms_import_downwards() -> None:
    assert upward_imports(ROOT) == []


def test_every_room_of_the_table_exists() -> None:
    source = ROOT / "src" / "potok"
    missing = [room for room in HEIGHT if not (source / room).is_dir() and not (source / f"{room}.py").is_file()]
    assert missing == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("records/record.py", "from potok.spark.session import spark_session"),
        ("records/record.py", "import potok.log"),
        ("log/broker.py", "from potok.state import cell"),
        ("log/broker.py", "from potok import StreamsBuilder"),
        ("log/broker.py", "from ..state import cell"),
        ("log/embedded/segments/segment.py", "def late():\n    from potok.dsl.stream import Stream"),
        ("attic/junk.py", "import potok.errors"),
    ],
)
def test_an_import_of_the_same_floor_or_of_a_higher_one_is_found(tmp_path: Path, path: str, line: str) -> None:
    place(tmp_path / "src" / "potok" / path, line)
    assert len(upward_imports(tmp_path)) == 1


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("log/broker.py", "from potok.records.log_record import LogRecord"),
        ("log/broker.py", "from potok.log.errors import DiskFull"),
        ("log/broker.py", "import pyarrow"),
        ("log/embedded/segments/segment.py", "from ..errors import DiskFull"),
        ("__init__.py", "from potok.cli.main import main"),
        ("demo/program.py", "from potok import StreamsBuilder"),
    ],
)
def test_an_import_of_a_lower_floor_or_of_the_own_room_is_allowed(tmp_path: Path, path: str, line: str) -> None:
    place(tmp_path / "src" / "potok" / path, line)
    assert upward_imports(tmp_path) == []


def place(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)
