"""The declaration of a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]

SECONDS = "seconds"
BYTES = "bytes"

BATCH_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
READ_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What other systems call the same thing; empty where they have nothing comparable."""

    kafka_streams: str = ""
    ksqldb: str = ""
    flink: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A metric: one name with one set of labels. The values of each label are bounded by what is declared: queries,
    topics, steps, reasons; never keys or messages.

    `help` is the text of `# HELP` and of docs/metrics.md.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    buckets: tuple[float, ...] = ()
    elsewhere: Elsewhere = Elsewhere()
