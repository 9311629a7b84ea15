from __future__ import annotations

from pathlib import Path

import pytest

from potok.cli.queries.program import load_topology
from potok.cli.queries.program_on_disk import ProgramOnDisk
from potok.statements.errors import CannotCompare
from potok.testing import TestDriver

PROGRAM = """
from potok import StreamsBuilder

builder = StreamsBuilder("shop")
orders = builder.stream("orders", value="user string, amount double")
orders.group_by("user").count(name="counts")
"""


@pytest.fixture
def on_disk(tmp_path: Path) -> tuple[Path, ProgramOnDisk]:
    """A program that has run, in a file that can be changed."""
    file = tmp_path / "shop.py"
    file.write_text(PROGRAM)
    with TestDriver(load_topology(str(file)), directory=tmp_path / "log") as driver:
        driver.send("orders", {"user": "ann", "amount": 1.0})
        driver.run()
    return file, ProgramOnDisk(str(file), f"file:{tmp_path / 'log'}")


def test_a_file_is_compared_with_the_query_and_changes_nothing(on_disk: tuple[Path, ProgramOnDisk]) -> None:
    file, program = on_disk
    assert program.differences() == []
    file.write_text(PROGRAM.replace('.count(name="counts")', '.sum("amount", name="counts")'))
    changed = program.differences()
    assert False in [change["fits"] for change in changed if change["step"] == "counts"]
    file.write_text(PROGRAM + 'orders.filter(lambda v: v["amount"] > 5).to("large")\n')
    assert all(change["fits"] for change in program.differences())


@pytest.mark.parametrize(
    ("text", "why"), [("raise ValueError('no table')", "no table"), ("print('hello')" + PROGRAM, "prints")]
)
def test_a_file_that_cannot_be_loaded_is_an_error_that_says_why(
    on_disk: tuple[Path, ProgramOnDisk], text: str, why: str
) -> None:
    file, program = on_disk
    file.write_text(text)
    with pytest.raises(CannotCompare, match=why):
        program.differences()
