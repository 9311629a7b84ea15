"""`potok sql` on a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-7][0-9;]*m")
TIMEOUT_S = 40.0

PROGRAM = """
import fcntl, termios
from potok.cli.main import main

fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C is a signal to this program
main()
"""


class Terminal:
    """A program on a terminal of its own, 80 characters wide."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self._fd, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "POTOK_BROKER")}
        own = {"TERM": "xterm-256color", "XDG_STATE_HOME": str(directory / "state"), **environment}
        program = [sys.executable, "-c", PROGRAM, "sql"]
        self.process = subprocess.Popen(
            program, cwd=directory, env=known | own, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        os.close(inner)
        self.seen, self._found = b"", 0

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until the text has come, behind what was waited for before. Whoever asks where the cursor is gets an
        answer, as from a terminal."""
        end = time.monotonic() + TIMEOUT_S
        while text.encode() not in self.seen[self._found :]:
            assert time.monotonic() < end, f"{text!r} did not come: {self.seen[-2000:]!r}"
            if select.select([self._fd], [], [], 0.2)[0]:
                came = os.read(self._fd, 65536)
                self.seen += came
                if b"\x1b[6n" in came:
                    os.write(self._fd, b"\x1b[1;1R")
        self._found = self.seen.index(text.encode(), self._found) + len(text.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._fd)


@pytest.mark.parametrize("colours", [True, False])
def test_a_session_at_the_keyboard(tmp_path: Path, colours: bool) -> None:
    terminal = Terminal(tmp_path, **({} if colours else {"NO_COLOR": "1"}))
    try:
        terminal.wait_for("potok>")
        terminal.type("DEFINE name = 'anna';\r")
        terminal.wait_for("Variable name is 'anna'")
        terminal.wait_for("potok>")
        terminal.type("SHOW VARIAB")
        terminal.wait_for(" VARIABLES ")  # the menu
        terminal.type("\t;\r")
        terminal.wait_for("└")
        terminal.wait_for("potok>")
        terminal.type("DROP STREAM nothing;\r")
        terminal.wait_for("hint:")
        terminal.wait_for("potok>")
        terminal.type("exit\r")
        assert terminal.process.wait(TIMEOUT_S) == 0
        assert (COLOUR.search(terminal.seen) is not None) is colours
    finally:
        terminal.close()
    assert "DROP STREAM nothing;" in (tmp_path / "state" / "potok" / "sql-history").read_text()


def test_ctrl_c_ends_a_push_query_and_ctrl_d_the_prompt(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    try:
        terminal.wait_for("potok>")
        terminal.type("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');\r")
        terminal.wait_for("Stream created")
        terminal.wait_for("potok>")
        terminal.type("INSERT INTO s VALUES (7); PRINT t FROM BEGINNING;\r")
        terminal.wait_for('value: {"A":7}')
        terminal.type("\x03")
        terminal.wait_for("1 record")
        terminal.wait_for("potok>")
        terminal.type("\x04")
        assert terminal.process.wait(TIMEOUT_S) == 0
    finally:
        terminal.close()
