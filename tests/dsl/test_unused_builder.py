"""A program that only builds a topology."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from potok import StreamsBuilder

builder = StreamsBuilder("orders")
builder.stream("in").to("out")
"""


def run(directory: Path, text: str) -> subprocess.CompletedProcess[str]:
    (directory / "orders.py").write_text(text)
    return subprocess.run(
        [sys.executable, "orders.py"], cwd=directory, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_program_that_runs_nothing_says_what_runs_it(tmp_path: Path) -> None:
    done = run(tmp_path, PROGRAM)
    assert (done.returncode, done.stdout) == (0, "")
    first, place, hint = done.stderr.splitlines()
    assert first == 'the topology "orders" was built, but never run'
    assert place.endswith("orders.py:4")
    assert hint.strip() == "hint: potok run orders.py, or end the program with potok.run(builder)"


def test_a_builder_inside_a_function_is_reported(tmp_path: Path) -> None:
    inside = "def main():\n" + "".join(f"    {line}\n" for line in PROGRAM.splitlines()) + "main()\n"
    assert "but never run" in run(tmp_path, inside).stderr


def test_a_program_that_uses_its_topology_says_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, PROGRAM + "print(builder.build().name)\n")
    assert (done.stdout, done.stderr) == ("orders\n", "")


def test_a_program_that_fails_says_only_why(tmp_path: Path) -> None:
    done = run(tmp_path, PROGRAM + "1 / 0\n")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "but never run" not in done.stderr


def test_a_builder_that_is_imported_is_used_by_others(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    assert run(tmp_path, "import shop\n").stderr == ""


APP = """
import asyncio
import potok.faust as faust

app = faust.App("shop", broker="file:./data")

@app.agent("orders")
async def count(stream):
    async for order in stream:
        yield order * 2

"""


def test_an_app_without_agents_or_tasks_is_reported(tmp_path: Path) -> None:
    assert "but never run" in run(tmp_path, APP).stderr


def test_a_program_that_only_sends_or_reads_or_tests_an_agent_says_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, APP + "asyncio.run(count.cast(1))\n").stderr == ""
    assert run(tmp_path, APP + "print(app.log().topics())\n").stderr == ""
    test = "async def test():\n    async with count.test_context() as agent:\n        await agent.put(1)\n"
    assert run(tmp_path, f"{APP}{test}asyncio.run(test())\n").stderr == ""


def test_a_warning_is_logged_once(tmp_path: Path) -> None:
    used = PROGRAM.replace('"orders"', '"used"') + "builder.build()\n"
    assert run(tmp_path, used + PROGRAM).stderr.count("but never run") == 1


def test_a_faust_program_ends_with_main(tmp_path: Path) -> None:
    reported = run(tmp_path, 'import potok.faust as faust\napp = faust.App("shop")\n').stderr
    assert "hint: potok run orders.py, or end the program with app.main()" in reported
