"""Whatever is typed, and whatever lies in the directory: a command does its work or says what is wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from tests import hostile
from typer.testing import CliRunner

from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.cli.main import COMMANDS, InternalError, NotText, app, unexpected
from potok.machine import MachineError
from potok.permissions import write_private
from potok.records.rows import rows_of

NAMES = [
    *("orders", "out", "q", "n", "nothing", "", "..", "a/b", "x" * 300, "é", "\ud800", "q:n", "orders:0"),
    "_commands",
    *("a b", "*", "-", "k1", "0", "q.dead_letters"),
]
NUMBERS = ["0", "1", "-1", "2147483648", "9" * 30, "9" * 5_000, "1.5", "x", "", "NaN", "1e3", "٣"]
TIMES = [
    *("yesterday", "2h ago", "now", "1", "-1", "9" * 30, "2026-05-01T12:30", "9999-12-31T23:59:59Z", "x", ""),
    "1e400",
    *("0001-01-01T00:00:00+05:00", "99999999999999999 hours ago", "2020-02-30", "earliest", "latest"),
]
PROGRAMS = [
    *("good.py", "good.py:builder", "good.py:nothing", "good.py:", "imports.py", "syntax.py", "bytes.py", "empty.py"),
    *("exits.py", "recurses.py", "file.txt", "dir", "nothing.py", "loop", "x" * 300 + ".py", "\ud800.py", ""),
    *("q", ":"),
]
FILES = [
    *("file.txt", "dir", "bytes.json", "deep.json", "lines.json", "nothing", "loop", "/dev/null", ""),
    "/proc/self/mem",
    *("deep.sql", "bytes.py", "x" * 300),
]
BROKERS = [
    *("good", "scrambled", "cut", "dirs", "gone", "foreign", "nothing", "file.txt", "dir", "loop"),
    *("x" * 300, "/proc/x"),
    *("/sys/x", "/dev/null", "file:", "http://x", "kafka://", "kafka://h:99999", "kafka://[::1", "a\ud800b"),
    *("", "redis://x"),
]
LINES = [
    *("topics list", "topics create NAME --partitions NUMBER", "topics describe NAME", "topics compact NAME"),
    *("topics archive NAME --to FILE", "topics delete NAME --yes", "produce NAME FILE"),
    "produce NAME FILE --partition NUMBER",
    "produce NAME FILE --key-field NAME --timestamp-field NAME",
    "produce NAME FILE --key-separator NAME --skip NUMBER",
    *("consume orders --from-beginning --max 2 --partition NUMBER", "groups list", "groups show NAME"),
    "groups reset NAME --to TIME",
    *("tables list", "tables get n NAME", "tables get NAME NAME", "tables scan n --from NAME --limit NUMBER"),
    "tables scan NAME",
    *("dead-letters list NAME", "dead-letters show q NUMBER", "dead-letters list q --since TIME"),
    "dead-letters replay NAME --yes",
    *("offsets show NAME", "offsets reset q --to TIME", "state show NAME", "state backup q FILE"),
    "state restore FILE --force",
    *("state verify NAME", "state reshard q --shards NUMBER", "checkpoints list", "checkpoints show NAME"),
    "describe PROGRAM",
    *("describe PROGRAM --mermaid", "explain PROGRAM", "diff PROGRAM", "sql --check FILE"),
]
CHOICES = {"NAME": NAMES, "NUMBER": NUMBERS, "TIME": TIMES, "PROGRAM": PROGRAMS, "FILE": FILES}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with a log, logs that are damaged in all ways, and programs that cannot be loaded."""
    root, before = tmp_path_factory.mktemp("place"), Path.cwd()
    builder = StreamsBuilder("q")
    builder.stream("orders").group_by_key().count(name="n").to_stream().to("out")
    with InProcess(builder, directory=root / "good", shards=2) as driver:
        for number in range(20):
            driver.send("orders", {"a": number}, f"k{number % 3}", timestamp=number)
        driver.run()
    for name in ("scrambled", "cut", "dirs", "gone"):
        shutil.copytree(root / "good", root / name)
        for file in [file for file in (root / name).rglob("*") if file.is_file()]:
            _damage(file, name)
    (root / "foreign" / "log" / "meta").mkdir(parents=True)
    (root / "foreign" / "log" / "meta" / "data.mdb").write_bytes(b"no LMDB" * 2_000)
    texts = {
        "good.py": "from potok import StreamsBuilder\nb = StreamsBuilder('q')\nb.stream('orders').to('out')\n",
        "imports.py": "import nothing_at_all\n",
        "syntax.py": "def (:\n",
        "empty.py": "",
        "file.txt": "x",
        "exits.py": "raise SystemExit(3)\n",
        "recurses.py": "def f(): f()\nf()\n",
        "deep.json": "[" * 100_000,
        "deep.sql": "SELECT (" * 2_000,
        "lines.json": '{"a":1}\n{"a":"\\ud800"}\n{"a":' + "9" * 6_000 + "}\n",
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    for name in ("bytes.py", "bytes.json"):
        (root / name).write_bytes(b"\xff\0\xfe{")
    (root / "dir").mkdir()
    (root / "loop").symlink_to("loop")
    os.chdir(root)
    yield root
    os.chdir(before)


def _damage(file: Path, how: str) -> None:
    data = bytearray(file.read_bytes())
    if how == "scrambled":
        for number in range(7, len(data), 97):
            data[number] ^= 0x55
        file.write_bytes(bytes(data))
    elif how == "cut":
        file.write_bytes(bytes(data[:100]))
    elif how == "dirs" or file.suffix == ".mdb":
        file.unlink()
        if how == "dirs":
            file.mkdir()


@hostile.explored(6)
@given(random=st.randoms(use_true_random=False))
def test_no_command_ends_with_a_stack_trace(place: Path, random: Random) -> None:
    for _ in range(10):
        words = [random.choice(CHOICES.get(word, [word])) for word in random.choice(LINES).split(" ")]
        assert words[0] in COMMANDS
        if words[0] not in ("explain", "sql"):
            words += ["--broker", random.choice(["good", random.choice(BROKERS)])]
        note(ascii([word[:80] for word in words]))
        found = CliRunner().invoke(app, words, prog_name="potok")
        os.chdir(place)
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        assert "an internal error" not in found.stderr


def test_unexpected_exceptions_are_reported_in_one_line_with_their_location(tmp_path: Path) -> None:
    def raised(work: object, *given: object) -> Exception:
        try:
            work(*given)  # type: ignore[operator]
        except Exception as error:  # noqa: BLE001 - that is what the test is about
            return error
        raise AssertionError

    internal = unexpected(raised(rows_of, 7))
    assert isinstance(internal, InternalError)
    assert "potok/records/rows.py" in internal.message
    refused = unexpected(raised(write_private, tmp_path / ("n" * 300), b""))
    assert isinstance(refused, MachineError)
    assert isinstance(unexpected(raised(write_private, tmp_path / "\ud8ff", b"")), NotText | MachineError)
    assert unexpected(raised(int, "of the user's program")) is None
