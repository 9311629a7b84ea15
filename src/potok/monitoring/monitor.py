"""What a process tells those who watch it."""

from __future__ import annotations

from dataclasses import dataclass, field

from potok.monitoring.health import Health
from potok.monitoring.registry import Registry


@dataclass(frozen=True, slots=True)
class Monitor:
    """The metrics and the health of a process."""

    registry: Registry = field(default_factory=Registry)
    health: Health = field(default_factory=Health)
