from __future__ import annotations

from pathlib import Path

import pytest

from cli.shop import SHOP, fill, write_program

pytestmark = pytest.mark.timeout(300)


def test_a_changed_program_is_built_as_a_shadow_and_promoted(potok, spark, tmp_path: Path) -> None:
    program = write_program(tmp_path / "program")
    fill(tmp_path / "data", program)
    assert potok("tables", "get", "order_counts", "anna", "--query", "shop").out == "3\n"
    changed = SHOP.replace('by_user.count(name="order_counts")', 'by_user.sum("amount", name="order_counts")')
    write_program(tmp_path / "program", changed)

    refused = potok("run", program, "--until-end")
    assert refused.code == 1
    missing = potok("promote", program)
    assert missing.code == 1
    assert "potok run PROGRAM --shadow" in missing.err

    assert potok("run", program, "--shadow", "--until-end").code == 0
    assert potok("tables", "get", "order_counts", "anna", "--query", "shop").out == "3\n"
    assert potok("tables", "get", "order_counts", "anna", "--query", "shadow-shop").out == "181.5\n"

    promoted = potok("promote", program)
    assert promoted.code == 0, promoted.err
    assert 'query "shop" has the new tables' in promoted.err
    assert potok("tables", "get", "order_counts", "anna", "--query", "shop").out == "181.5\n"
    assert {row["query"] for row in potok("tables", "list", "--json").objects} == {"shop"}
    assert potok("run", program, "--until-end").code == 0
