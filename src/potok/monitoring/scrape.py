"""What one scrape collects."""

from __future__ import annotations

from collections.abc import Iterator

from potok.monitoring.family import Family
from potok.monitoring.histogram import Distribution

MOST_SERIES = 5_000
"""The largest number of label sets of one metric. Labels are bounded by what is declared; this is a second fence."""

Labels = tuple[str, ...]


class Scrape:
    """The samples of one scrape, by metric. A label set that is added twice keeps its last value."""

    def __init__(self) -> None:
        self._found: dict[Family, dict[Labels, float | Distribution]] = {}
        self.left_out = 0
        """Samples beyond `MOST_SERIES`."""

    def add(self, family: Family, value: float | Distribution | None, *labels: str) -> None:
        """Add a sample with the values of the family's labels, in their order; None is unknown, and left out."""
        if value is None:
            return
        series = self._found.setdefault(family, {})
        if len(series) >= MOST_SERIES and labels not in series:
            self.left_out += 1
            return
        series[labels] = value

    def families(self) -> Iterator[tuple[Family, dict[Labels, float | Distribution]]]:
        """Yield the metrics that have samples, by name."""
        yield from sorted(self._found.items(), key=lambda item: item[0].name)
