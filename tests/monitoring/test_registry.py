"""A part of a process that cannot be collected does not hide the others."""

from __future__ import annotations

from potok.errors import LogError
from potok.monitoring.families import BATCHES
from potok.monitoring.registry import Registry
from potok.monitoring.scrape import Scrape


def lines(registry: Registry) -> list[str]:
    return registry.expose().body.decode().splitlines()


def test_a_collector_that_fails_is_counted_and_left_out() -> None:
    registry = Registry()

    def away(_: Scrape) -> None:
        raise LogError("the log does not answer")

    registry.add(away)
    registry.add(lambda scrape: scrape.add(BATCHES, 3, "orders"))
    assert 'potok_batches_total{query="orders"} 3' in lines(registry)
    assert "potok_scrape_failures 1" in lines(registry)


def test_a_collector_can_be_removed() -> None:
    registry = Registry()
    remove = registry.add(lambda scrape: scrape.add(BATCHES, 3, "orders"))
    remove()
    remove()
    assert 'potok_batches_total{query="orders"} 3' not in lines(registry)


def test_a_label_set_that_is_added_twice_has_its_last_value() -> None:
    registry = Registry()
    for value in (1, 2):
        registry.add(lambda scrape, value=value: scrape.add(BATCHES, value, "orders"))
    assert [line for line in lines(registry) if line.startswith("potok_batches")] == [
        'potok_batches_total{query="orders"} 2'
    ]


def test_the_process_describes_itself_by_the_usual_names() -> None:
    names = {line.partition(" ")[0] for line in lines(Registry())}
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"} <= names
