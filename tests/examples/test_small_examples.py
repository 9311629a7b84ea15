"""The small programs of `examples/` print what their pages say, in the test driver and whatever the batches."""

from __future__ import annotations

import importlib.util
import json
import socket
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from potok import open_broker
from potok.sources import Gateway
from potok.testing import SqlDriver, TestDriver

EXAMPLES = Path(__file__).parents[2] / "examples"


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_example", EXAMPLES / name / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed_on_page(name: str) -> str:
    return (EXAMPLES / name / "README.md").read_text().partition("```text\n")[2].partition("```")[0]


def inputs(name: str, app: ModuleType) -> list[dict[str, Any]]:
    """The records of the sample of a program, as arguments of `TestDriver.send`."""
    match name:
        case "clickstream":
            return [{"topic": "clicks", "value": value, "timestamp": at} for value, at in app.records()]
        case "leaderboard":
            return [{"topic": "points", "value": value, "timestamp": at} for value, at in app.records()]
        case "rate_limit":
            return [{"topic": "requests", "key": key, "value": row, "timestamp": at} for key, row, at in app.records()]
    return [{"topic": "readings", "value": datagram} for datagram in app.datagrams()]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("name", ["clickstream", "iot", "leaderboard", "rate_limit"])
def test_a_program_prints_what_its_page_says(name: str, size: int, capsys: pytest.CaptureFixture[str]) -> None:
    app = program(name)
    with TestDriver(app.builder, shards=2) as driver:
        for number, record in enumerate(inputs(name, app), 1):
            driver.send(**record)
            if number % size == 0:
                driver.run(more_to_come=True)
        driver.run()
        app.report(driver.tables)
        late = [dead_letter.reason for dead_letter in driver.dead_letters()]
    assert capsys.readouterr().out == printed_on_page(name)
    assert late == (["late"] if name == "iot" else [])


def test_the_readings_of_sensors_arrive_over_udp(tmp_path: Path) -> None:
    app = program("iot")
    with Gateway(str(tmp_path), [app.LISTENER]) as gateway, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sensor:
        host, _, port = gateway.address("readings").rpartition(":")
        for datagram in app.datagrams():
            sensor.sendto(datagram, (host, int(port)))
        deadline = time.monotonic() + 60
        while gateway.counts("readings").landed < len(app.SAMPLE) and time.monotonic() < deadline:
            time.sleep(0.01)
    log = open_broker(tmp_path)
    values = [row["value"] for batch in log.read("readings", 0, 0, len(app.SAMPLE)) for row in batch.to_pylist()]
    log.close()
    assert values == app.datagrams()


def test_the_script_counts_and_sums_the_orders() -> None:
    script = (EXAMPLES / "ksql_orders.sql").read_text()
    with SqlDriver(script.rpartition("SELECT *")[0]) as driver:
        driver.run()
        assert driver.query("SELECT * FROM order_counts;") == [{"USER_ID": "user_001", "ORDERS": 2}]
        assert [row["TOTAL"] for row in driver.query("SELECT user_id, total FROM hourly_totals;")] == [140.5]
        assert [row.columns["STATUS"] for row in driver.rows("high_value_orders")] == ["HIGH_VALUE"]


def test_every_example_is_in_the_index() -> None:
    index = (EXAMPLES / "README.md").read_text()
    programs = {path.name for path in EXAMPLES.iterdir() if path.name not in ("README.md", "__pycache__")}
    assert {name for name in programs if f"({name}" not in index} == set()


def test_the_notebook_runs_and_shows_what_it_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__notebook__"}
    cells = json.loads((EXAMPLES / "notebook" / "shop.ipynb").read_text())["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "<notebook>", "exec", dont_inherit=True), names)
    assert names["totals"].loc["user_001", "value"] == 145.5
    assert len(names["axes"].patches) == len(names["totals"]) == 2
