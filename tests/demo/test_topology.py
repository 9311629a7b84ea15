from __future__ import annotations

from potok.demo.topology import PANELS, build
from potok.topology.describe import description_of


def test_every_step_runs_native() -> None:
    steps = description_of(build().build())["steps"]

    assert {step["name"]: step["reason"] for step in steps if step["runs"] != "native"} == {}


def test_the_panels_show_tables_that_the_topology_keeps() -> None:
    tables = {node.name for node in build().build().tables}

    for panel in PANELS:
        assert panel.table in tables
        assert panel.beside is None or panel.beside[0] in tables
