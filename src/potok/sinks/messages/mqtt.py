"""Publish records to an MQTT broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import TopologyError
from potok.extras import need_extra
from potok.sinks.guarantee import Guarantee
from potok.sinks.messages.destination import KEY, addressed, longer_than
from potok.sinks.sink_spec import NO_VALUE, Opening, Prepared, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.urls import address_of, clear_url

MqttVersion = Literal["5", "3.1.1"]

SCHEMES = ("mqtt", "mqtts")

LONGEST = 65_535
"""The most bytes of a topic."""

_WILDCARD = r"[+#\x00]"


@dataclass(frozen=True, slots=True)
class MqttTarget(SinkSpec):
    """A topic, or one topic for each key. The URL may contain a password and is not shown."""

    verb: ClassVar[str] = "to_mqtt"

    url: str = field(repr=False)
    topic: str
    qos: int
    retain: bool
    version: MqttVersion
    give_up_after_ms: int | None
    with_key: bool

    @property
    def label(self) -> str:
        return f'topic "{self.topic}" at {address_of(self.url)}'

    def check(self, types: Types, guarantee: Guarantee) -> None:
        need_extra("to_mqtt", "mqtt")
        if self.url.partition(":")[0] not in SCHEMES or not clear_url(self.url).hosts:
            raise TopologyError("this is not an MQTT broker", hint='write "mqtt://localhost:1883"')
        if guarantee is Guarantee.EXACTLY_ONCE:
            raise TopologyError(
                "MQTT cannot promise exactly_once: a broker does not recognise a message that is published again after "
                "a crash",
                hint="leave guarantee out: a message arrives at least once, always with the same user property "
                "message-id, by which its subscribers recognise it",
            )
        if self.version not in ("5", "3.1.1"):
            raise TopologyError(f'there is no version "{self.version}"', hint='use "5" or "3.1.1"')
        if self.qos not in (0, 1):
            raise TopologyError(f"qos = {self.qos} is not possible", hint="write qos=1, or qos=0 with at_most_once")
        if self.qos == 0 and guarantee is not Guarantee.AT_MOST_ONCE:
            hint = 'write qos=1, or guarantee="at_most_once"'
            raise TopologyError("QoS 0 has no acknowledgements, so it cannot promise at_least_once", hint=hint)
        if not self.topic or len(self.topic.encode()) > LONGEST or any(each in self.topic for each in "+#\0"):
            hint = f'write topic="orders", or topic="orders/{KEY}"'
            raise TopologyError(f'nothing can be published to the topic "{self.topic}"', hint=hint)

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """Prepare topics and bodies. With `retain`, a null value becomes the empty message that deletes the last."""
        found = addressed(rows, self.topic, with_key=self.with_key)
        failures = found.failures
        topics: pa.Array = found.key
        if self.retain and not self.with_key:
            failures = {row: why for row, why in failures.items() if why != NO_VALUE}
        wild = pc.indices_nonzero(pc.match_substring_regex(topics, _WILDCARD).fill_null(False)).to_pylist()
        refused = dict.fromkeys(wild, "the topic has a wildcard: +, # or NUL")
        return Prepared(topics, found.value, {**longer_than(topics, LONGEST, "the topic"), **refused, **failures})

    def open(self, opening: Opening) -> SinkWriter:
        from potok.sinks.messages.mqtt_writer import MqttWriter  # imports the client

        return MqttWriter(self, opening)
