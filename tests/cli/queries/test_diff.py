from __future__ import annotations

from pathlib import Path

from cli.shop import SHOP, leave_a_run, write_program


def changed(tmp_path: Path, old: str, new: str) -> str:
    assert old in SHOP
    leave_a_run(tmp_path / "data", write_program(tmp_path / "program"))
    return write_program(tmp_path / "program", SHOP.replace(old, new), "changed.py")


def test_a_query_that_never_ran_has_nothing_to_differ_from(potok, tmp_path: Path) -> None:
    result = potok("diff", write_program(tmp_path))
    assert (result.code, result.out) == (0, "")
    assert 'query "shop" has not run here yet' in result.err


def test_the_same_program_has_no_changes(potok, tmp_path: Path) -> None:
    program = write_program(tmp_path / "program")
    leave_a_run(tmp_path / "data", program)
    result = potok("diff", program)
    assert (result.code, result.out) == (0, "")
    assert result.err.strip() == 'nothing changed since query "shop" ran last'


def test_a_change_that_fits_ends_with_0(potok, tmp_path: Path) -> None:
    program = changed(tmp_path, 'by_user.count(name="order_counts")', 'by_user.count(name="orders_seen")')
    result = potok("diff", program, "--json")
    assert result.code == 0
    assert {(change["step"], change["fits"]) for change in result.objects} == {
        ("order_counts", True),
        ("orders_seen", True),
    }
    assert 'the state of query "shop" is compatible' in potok("diff", program).err


def test_a_change_that_does_not_fit_ends_with_1_and_says_what_to_do(potok, tmp_path: Path) -> None:
    program = changed(tmp_path, "tumbling(hours(1))", "tumbling(hours(2))")
    result = potok("diff", program)
    assert result.code == 1
    row = next(line for line in result.out.splitlines() if "hourly_totals" in line)
    assert row.startswith("does not fit") and "its window was tumbling 1h and is tumbling 2h" in row
    assert "give the changed step another name=" in result.err
    assert [change["fits"] for change in potok("diff", program, "--json").objects] == [False]


def test_a_changed_source_schema_is_compatible_and_reported_by_field(potok, tmp_path: Path) -> None:
    program = changed(tmp_path, "    items: list[str]\n", "    items: list[str] | None\n    note: str\n")
    result = potok("diff", program)
    assert result.code == 0
    rows = [line for line in result.out.splitlines() if line.startswith("fits") and " orders " in line]
    assert [row.split("orders", 1)[1].strip().split(";")[0] for row in rows] == [
        'field "items" of its value was array<string not null> not null and is array<string not null>',
        'its value has a new field "note" string not null',
    ]
    assert "are dead letters from here on" in rows[-1]


def test_nothing_is_touched(potok, tmp_path: Path) -> None:
    program = changed(tmp_path, "tumbling(hours(1))", "tumbling(hours(2))")
    potok("diff", program)
    assert potok("diff", str(tmp_path / "program" / "shop.py")).out == ""
