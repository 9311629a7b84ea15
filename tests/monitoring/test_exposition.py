"""A scrape is written in the format that was asked for, and other programs read the same values from it."""

from __future__ import annotations

import math

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from potok.monitoring.exposition import OPEN_METRICS, TEXT, expose, prefers_open_metrics
from potok.monitoring.families import BATCH_DURATION, FAMILIES, QUERY_STATE, RECORDS, SOURCE_LAG_SECONDS
from potok.monitoring.family import Family
from potok.monitoring.histogram import Distribution, Histogram
from potok.monitoring.registry import Registry
from potok.monitoring.scrape import MOST_SERIES, Scrape

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


def test_the_text_format_has_one_head_per_metric_and_one_line_per_series() -> None:
    scrape = Scrape()
    scrape.add(RECORDS, 7, "orders", "in")
    scrape.add(RECORDS, 3, "orders", "out")
    found = expose(scrape)
    assert found.content_type == TEXT
    assert found.body.decode().splitlines()[1:] == [
        "# TYPE potok_records_total counter",
        'potok_records_total{query="orders",direction="in"} 7',
        'potok_records_total{query="orders",direction="out"} 3',
    ]


def test_openmetrics_names_counters_without_suffix_has_units_and_ends() -> None:
    scrape = Scrape()
    scrape.add(RECORDS, 7, "orders", "in")
    scrape.add(SOURCE_LAG_SECONDS, 1.5, "orders", "t")
    found = expose(scrape, "application/openmetrics-text")
    lines = found.body.decode().splitlines()
    assert found.content_type == OPEN_METRICS
    assert "# TYPE potok_records counter" in lines
    assert "# UNIT potok_source_lag_seconds seconds" in lines
    assert lines[-1] == "# EOF"


@pytest.mark.parametrize("text", ['a "quoted" name', "two\nlines", "back\\slash", "{}=,", "привет", "\\n"])
def test_any_text_can_be_the_value_of_a_label(text: str) -> None:
    scrape = Scrape()
    scrape.add(QUERY_STATE, 1, text, "running")
    for accept, read in ((None, read_text), ("application/openmetrics-text", read_open_metrics)):
        [family] = read(expose(scrape, accept).body.decode())
        assert family.samples[0].labels == {"query": text, "state": "running"}


def test_the_buckets_of_a_histogram_are_cumulative() -> None:
    histogram = Histogram(BATCH_DURATION.buckets)
    for seconds in (0.005, 0.01, 0.02, 7.0, 1_000.0):
        histogram.observe(seconds)
    scrape = Scrape()
    scrape.add(BATCH_DURATION, histogram.read(), "orders", "total")
    for accept, read in ((None, read_text), ("application/openmetrics-text", read_open_metrics)):
        [family] = read(expose(scrape, accept).body.decode())
        buckets = {s.labels["le"]: s.value for s in family.samples if s.name.endswith("_bucket")}
        assert (buckets["0.01"], buckets["0.025"], buckets["5.0"], buckets["10.0"]) == (2, 3, 3, 4)
        assert (buckets["120.0"], buckets["+Inf"]) == (4, 5)
        rest = {s.name: s.value for s in family.samples if not s.name.endswith("_bucket")}
        assert rest == {
            "potok_batch_duration_seconds_sum": pytest.approx(1_007.035),
            "potok_batch_duration_seconds_count": 5,
        }


def test_every_number_is_written_so_that_it_is_read_back() -> None:
    for value in (0, 12345678901234567, 0.1, 1e-9, 1.5e20, math.inf, -math.inf, math.nan):
        scrape = Scrape()
        scrape.add(SOURCE_LAG_SECONDS, value, "q", "t")
        [family] = read_text(expose(scrape).body.decode())
        read = family.samples[0].value
        assert read == value or (math.isnan(read) and math.isnan(value))


@pytest.mark.parametrize(
    ("accept", "is_preferred"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text; version=1.0.0", True),
        (PROMETHEUS, True),
        ("text/plain;q=0.9,application/openmetrics-text;q=0.5", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=nonsense", False),
        ("text/plain;version=0.0.4", False),
    ],
)
def test_openmetrics_is_written_only_if_it_is_preferred(accept: str, is_preferred: bool) -> None:
    assert prefers_open_metrics(accept) is is_preferred


def test_an_unknown_value_is_left_out() -> None:
    scrape = Scrape()
    scrape.add(SOURCE_LAG_SECONDS, None, "q", "t")
    assert expose(scrape).body == b""


def test_a_metric_has_a_bounded_number_of_series_and_says_what_it_left_out() -> None:
    registry = Registry()

    def collect(scrape: Scrape) -> None:
        for number in range(MOST_SERIES + 2):
            scrape.add(SOURCE_LAG_SECONDS, 1.0, f"q{number}", "t")

    registry.add(collect)
    lines = registry.expose().body.decode().splitlines()
    assert sum(line.startswith("potok_source_lag_seconds{") for line in lines) == MOST_SERIES
    assert "potok_scrape_series_left_out 2" in lines


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_metric_of_the_list_is_valid_in_both_formats(family: Family) -> None:
    scrape, labels = Scrape(), [f"a {label}" for label in family.labels]
    value = Distribution((1,) * (len(family.buckets) + 1), 2.0) if family.kind == "histogram" else 3
    scrape.add(family, value, *labels)
    for accept, read in ((None, read_text), ("application/openmetrics-text", read_open_metrics)):
        [found] = read(expose(scrape, accept).body.decode())
        assert (found.type, found.name) == (family.kind, family.name.removesuffix("_total"))
        assert family.unit in ("", *family.name.split("_"))
