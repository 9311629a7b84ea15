"""A live panel on a real terminal: a pseudo terminal, and what a user would see on it at the end."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import subprocess
import sys

from potok.cli.queries.panel import Screen

snapshot = {"query": "shop", "state": "running", "at": 1, "uptime_ms": 1000, "idle": True}
screen = Screen()
with screen.live():
    with screen.starting():
        print("printed at the start")
    with screen.running():
        screen.update(snapshot)
        print("printed by the program")
        subprocess.run([sys.executable, "-c", "import sys; print('printed by a child', file=sys.stderr)"])
        screen.update(snapshot)
        print("now type", flush=True)
        sys.stdin.readline()
        print("[red]printed later[/]", end="")
        screen.update(snapshot | {"state": "stopped", "idle": False})
print("printed after it")
"""

CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


def screen_of(text: str, width: int = 80) -> list[str]:
    """The lines of a terminal that was written to from its top, as far as a panel makes use of one."""
    lines, row, column, at = [""], 0, 0, 0
    while at < len(text):
        control = CONTROL.match(text, at)
        if control is not None:
            number, command = control.groups()
            if command == "A":
                row = max(0, row - int(number or 1))
            elif command == "K":
                lines[row] = ""
            at = control.end()
            continue
        letter, at = text[at], at + 1
        if letter == "\r":
            column = 0
        elif letter == "\n" or column == width:
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        if letter not in "\r\n":
            lines[row] = lines[row].ljust(column)[:column] + letter + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]


def run_on_a_terminal(directory: Path, typed: bytes) -> list[str]:
    master, slave = pty.openpty()
    (directory / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24", "PYTHONUNBUFFERED": "1"}
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    process = subprocess.Popen([sys.executable, "program.py"], cwd=directory, env=environment, **streams)
    os.close(slave)
    said, is_typed = b"", False
    try:
        while True:
            try:
                said += os.read(master, 4096)
            except OSError:  # the other end was closed
                break
            if b"now type" in said and not is_typed:
                is_typed = True
                os.write(master, typed)
        assert process.wait(60) == 0, said.decode()
    finally:
        process.kill()
        os.close(master)
    return screen_of(said.decode())


def test_output_is_printed_above_the_panel_and_keys_are_not_echoed(tmp_path: Path) -> None:
    lines = run_on_a_terminal(tmp_path, b"typed\n")
    top = next(number for number, line in enumerate(lines) if line.startswith("╭"))
    assert [line for line in lines[:top] if line] == [
        "printed at the start",
        "printed by the program",
        "printed by a child",
        "now type",
        "[red]printed later[/]",
    ]
    assert [line[0] for line in lines[top : top + 3]] == ["╭", "│", "╰"]
    assert "shop stopped" in lines[top]
    assert [line for line in lines[top + 3 :] if line] == ["printed after it"]


def test_the_terminal_of_the_test_moves_up_and_clears_lines() -> None:
    assert screen_of("one\r\ntwo\r\x1b[2K\x1b[1A\x1b[2Kthree\r\n") == ["three", ""]
    assert screen_of("abcd", width=3) == ["abc", "d"]
