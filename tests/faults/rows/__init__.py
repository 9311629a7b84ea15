"""All rows, in the order in which they are played."""

from tests.faults.rows import kills, workers, disk, damage, drivers, clock, poison, sinks, kafka, cluster  # noqa: I001

__all__ = ["clock", "cluster", "damage", "disk", "drivers", "kafka", "kills", "poison", "sinks", "workers"]
