"""From what the user says of a table's rows to how long they live."""

from __future__ import annotations

from potok.duration import Duration, to_ms
from potok.errors import Location, TopologyError
from potok.topology.nodes.lifetime import Lifetime


def lifetime_of(ttl: Duration | None, ttl_clock: str, history: Duration | None, at: Location | None) -> Lifetime:
    if ttl_clock not in ("event", "processing"):
        hint = 'write ttl_clock="event" or ttl_clock="processing"'
        raise TopologyError(f'ttl_clock="{ttl_clock}" is not known', hint=hint, at=at)
    if ttl is not None and history is not None:
        hint = "a table that keeps versions forgets by history=; take one of the two"
        raise TopologyError("a table has either a ttl or a history", hint=hint, at=at)
    for name, duration in (("ttl", ttl), ("history", history)):
        if duration is not None and to_ms(duration) <= 0:
            raise TopologyError(f"{name}={duration!r} keeps nothing", hint=f'write {name}="1 day"', at=at)
    return Lifetime(
        None if ttl is None else to_ms(ttl), ttl_clock == "processing", None if history is None else to_ms(history)
    )
