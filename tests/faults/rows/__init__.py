"""All rows, in the order in which they are played."""

from tests.faults.rows import kills, workers, disk, damage, drivers, clock, poison, sinks, restarts, gateway  # noqa: I001
from tests.faults.rows import kafka, cluster, cdc

__all__ = [
    "cdc",
    "clock",
    "cluster",
    "damage",
    "disk",
    "drivers",
    "gateway",
    "kafka",
    "kills",
    "poison",
    "restarts",
    "sinks",
    "workers",
]
