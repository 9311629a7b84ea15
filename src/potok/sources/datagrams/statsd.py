"""The options of a StatsD listener."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from potok.sources.arrival import Arrival
from potok.sources.datagrams.parse import records_of
from potok.sources.datagrams.udp import DatagramListener, Udp
from potok.sources.listener import Listener, ListenerContext, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Statsd(Udp):
    """StatsD metrics over UDP, one record each: the key is the name, the value is JSON with `type`, `value`, `rate` and
    `relative`. A datagram may contain several lines `NAME:VALUE|TYPE` or `NAME:VALUE|TYPE|@RATE`; the types are those
    of Brubeck: `g`, `c`, `C`, `h` and `ms`. A gauge with a sign is relative. Counts are of metrics, except for
    `kernel_dropped`. `statsd_tables` builds tables of them.
    """

    kind: ClassVar[str] = "statsd"

    sets: bool = option(
        "Accept the type `s`, whose value is a member of a set and lands as `member`; otherwise it is malformed.",
        default=False,
    )

    def open(self, context: ListenerContext) -> Listener:
        def convert(data: Sequence[bytes], context: ListenerContext) -> Arrival | None:
            parsed = records_of(data, sets=self.sets)
            if parsed.malformed:
                context.malformed(parsed.malformed, "not a StatsD metric")
            return Arrival(parsed.records, parsed.size) if len(parsed.records) else None

        return DatagramListener(self, context, convert)
