from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from potok.cli.prompt.grid import Cells, Grid


def drawn(
    headings: list[str], rows: list[Cells], *, width: int | None = None, encoding: str = "utf-8", colour: bool = False
) -> list[str]:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    out = Console(file=file, force_terminal=colour, color_system="standard" if colour else None, width=200)
    Grid(out, headings, [heading == "N" for heading in headings], width).draw(rows)
    file.flush()
    return raw.getvalue().decode(encoding).splitlines()


def test_a_table_has_lines_around_it_and_numbers_to_the_right() -> None:
    assert drawn(["NAME", "N"], [["anna", "1"], ["böb", "200"]]) == [
        "┌──────┬─────┐",
        "│ NAME │ N   │",
        "├──────┼─────┤",
        "│ anna │   1 │",
        "│ böb  │ 200 │",
        "└──────┴─────┘",
    ]


def test_a_terminal_without_such_characters_gets_others() -> None:
    assert drawn(["N"], [["1"]], encoding="ascii")[0] == "+---+"


def test_null_is_marked_where_there_are_colours_and_spelled_everywhere() -> None:
    assert drawn(["A"], [[None]])[3] == "│ NULL │"
    null, text = (drawn(["A"], [[cell]], colour=True)[3] for cell in (None, "NULL"))
    assert null != text


@pytest.mark.parametrize("width", [30, 40, 60])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_left_out(width: int) -> None:
    words = "the quick brown fox jumps over a lazy dog"
    lines = drawn(["A", "B", "N"], [[words, "#" * 40, "1"], ["日本語日本語日本語日本語日本語", "y", "22"]], width=width)
    assert max(map(cell_len, lines)) <= width
    text = "".join(lines)
    assert text.count("#") == 40
    assert [word for word in words.split() if word not in text] == []
    assert sum(text.count(letter) for letter in "日本語") == 15


def test_what_does_not_fit_side_by_side_becomes_a_list() -> None:
    headings = [f"COLUMN_{n}" for n in range(8)]
    lines = drawn(headings, [[str(n) for n in range(8)]], width=30)
    assert lines[0].startswith("── row 1 ─")
    assert lines[1:3] == ["COLUMN_0 │ 0", "COLUMN_1 │ 1"]


def test_rows_that_come_later_keep_the_columns() -> None:
    file = io.StringIO()
    grid = Grid(Console(file=file, width=200), ["A"], [False], 20)
    grid.add([["short"]])
    grid.add([["longer than short"]])
    grid.end()
    lines = file.getvalue().splitlines()
    assert len({len(line) for line in lines}) == 1
    assert [line.strip("│| ") for line in lines[4:-1]] == ["longe", "r", "than", "short"]


def test_where_more_rows_may_come_columns_are_wider_than_the_first_row() -> None:
    file = io.StringIO()
    grid = Grid(Console(file=file, width=200), ["A", "N"], [False, True], 60, roomy=True)
    grid.add([["a", "1"]])
    grid.add([["longer than the first", "22"]])
    grid.end()
    assert [line.strip("│ ").split()[0] for line in file.getvalue().splitlines()[3:6]] == ["a", "longer", "first"]
