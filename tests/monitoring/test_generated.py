"""The page, the alerts and the dashboard are what the list of metrics says, and Prometheus accepts them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from monitoring.alert_cases import CASES, promtool_tests
from potok.monitoring.alerts import ALERTS, rules
from potok.monitoring.dashboard import dashboard, expressions
from potok.monitoring.exposition import expose
from potok.monitoring.families import FAMILIES
from potok.monitoring.histogram import Distribution
from potok.monitoring.reference import page
from potok.monitoring.scrape import Scrape

ROOT = Path(__file__).parents[2]
NAMES = {family.name for family in FAMILIES}
SUFFIXES = re.compile(r"_(bucket|sum|count)$")


def metrics_in(expr: str) -> set[str]:
    """Return the names of metrics in an expression."""
    return {SUFFIXES.sub("", name) for name in re.findall(r"\b(?:potok|kafka|process)_[a-z_]+", expr)}


def test_the_page_is_up_to_date() -> None:
    hint = "run python -m potok.monitoring.reference > docs/metrics.md"
    assert (ROOT / "docs" / "metrics.md").read_text() == page(), hint


def test_the_rules_are_up_to_date() -> None:
    hint = "run python -m potok.monitoring.alerts > deploy/prometheus/potok.rules.yml"
    assert (ROOT / "deploy" / "prometheus" / "potok.rules.yml").read_text() == rules(), hint


def test_the_dashboard_is_up_to_date() -> None:
    hint = "run python -m potok.monitoring.dashboard > deploy/grafana/potok.json"
    assert json.loads((ROOT / "deploy" / "grafana" / "potok.json").read_text()) == dashboard(), hint


@pytest.mark.parametrize("expr", [*(alert.expr for alert in ALERTS), *expressions()])
def test_alerts_and_panels_name_metrics_of_the_list(expr: str) -> None:
    assert metrics_in(expr)
    assert metrics_in(expr) <= NAMES


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_promtool_finds_nothing_wrong_with_the_metrics(promtool: str) -> None:
    scrape = Scrape()
    for family in FAMILIES:
        value = Distribution((1,) * (len(family.buckets) + 1), 2.0) if family.kind == "histogram" else 3
        scrape.add(family, value, *family.labels)
    text = expose(scrape).body
    found = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")


def test_promtool_accepts_the_rules(promtool: str) -> None:
    path = ROOT / "deploy" / "prometheus" / "potok.rules.yml"
    found = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert f"{len(ALERTS)} rules found" in found.stdout


def test_each_alert_fires_when_it_should_and_only_then(promtool: str, tmp_path: Path) -> None:
    assert CASES.keys() == {alert.name for alert in ALERTS}
    path = tmp_path / "cases.yml"
    path.write_text(promtool_tests(ROOT / "deploy" / "prometheus" / "potok.rules.yml"))
    found = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
