from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.shop import SHOP, fill, write_program
from potok.snapshots.tables import open_tables

pytestmark = pytest.mark.timeout(300)

CHANGED = SHOP.replace('by_user.count(name="order_counts")', 'by_user.sum("amount", name="order_counts")')


def test_the_tables_of_a_stopped_query_are_rebuilt_with_one_command(potok, spark, tmp_path: Path) -> None:
    program = write_program(tmp_path / "program")
    fill(tmp_path / "data", program)
    write_program(tmp_path / "program", CHANGED)
    done = potok("rebuild", program, "--json")
    assert done.code == 0, done.err
    assert (done.objects[-2]["phase"], done.objects[-2]["percent"]) == ("swapping", 100.0)
    assert done.objects[-1] == {"event": "promoted", "old_cells": "shop", "query": "shop"}
    assert potok("tables", "get", "order_counts", "anna").out == "181.5\n"
    assert {row["query"] for row in potok("tables", "list", "--json").objects} == {"shop"}
    assert potok("run", program, "--until-end").code == 0


def test_a_query_that_never_ran_is_named(potok, spark, tmp_path: Path) -> None:
    program = write_program(tmp_path / "program")
    (tmp_path / "data").mkdir()
    fill(tmp_path / "data", program)
    other = write_program(tmp_path / "program", SHOP.replace('"shop"', '"shop2"'), "other.py")
    refused = potok("rebuild", other)
    assert (refused.code, 'there is no query "shop2"' in refused.err) == (1, True)


@pytest.mark.spark
def test_a_program_that_runs_is_replaced_by_its_new_version(tmp_path: Path) -> None:
    old, new = write_program(tmp_path / "old"), write_program(tmp_path / "new", CHANGED)
    data = tmp_path / "data"
    fill(data, old)
    command = [str(Path(sys.executable).with_name("potok")), "--broker", str(data)]
    live = subprocess.Popen([*command, "run", old, "--json"], stdout=subprocess.PIPE, text=True)
    assert live.stdout is not None
    live.stdout.readline()
    rebuilding = subprocess.Popen(
        [*command, "rebuild", new, "--run"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert rebuilding.stderr is not None
        for line in rebuilding.stderr:
            if "have caught up" in line:
                with open_tables(data, "shop") as tables:
                    assert tables["order_counts"].get("anna") == 3
                live.send_signal(signal.SIGTERM)
            if line.startswith("running"):
                break
        live.communicate(timeout=60)
        assert live.returncode == 0
        with open_tables(data, "shop") as tables:
            assert tables["order_counts"].get("anna") == 181.5
        rebuilding.send_signal(signal.SIGTERM)
        rebuilding.communicate(timeout=60)
        assert rebuilding.returncode == 0
    finally:
        for process in (live, rebuilding):
            process.kill()
            process.communicate()
