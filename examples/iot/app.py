"""Readings of sensors over UDP: averages per minute with late data, and alerts for sensors that fall silent."""

import json
import socket
import time
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

import potok
from potok import StreamsBuilder, tumbling
from potok.sources import Gateway, Overload, Udp


class Silence(potok.Processor):
    """Report a sensor that has sent nothing for five minutes."""

    def process(self, sensor: str, reading: dict[str, Any], ctx: potok.ProcessorContext) -> None:
        """Start to wait again."""
        ctx.cancel("silence")
        ctx.schedule(after="5 minutes", name="silence")

    def on_timer(self, sensor: str, at: int, ctx: potok.ProcessorContext) -> None:
        """Report the sensor."""
        ctx.forward({"sensor": sensor, "since": at - 300_000}, to="silent")


builder = StreamsBuilder("iot")
readings = builder.stream(
    "readings", value="sensor string, celsius double, at bigint", timestamp="at", max_jump="1 hour"
)
by_sensor = readings.group_by("sensor")
minutes = by_sensor.windowed_by(tumbling("1 minute", grace="30 seconds"))
minutes.emit_final().avg("celsius", name="per_minute").to_stream().to("averages")

silent = readings.select_key("sensor").process(
    Silence, name="silence", outputs={"silent": "sensor string, since bigint"}
)
silent["silent"].to("silent-sensors")
silent["silent"].group_by_key().latest("since", name="silent_since")

LISTENER = Udp(name="readings", topic="readings", listen="127.0.0.1:0", overload=Overload(when_full="drop_oldest"))

SAMPLE = [
    ("cellar", 5, 11.0),
    ("attic", 10, 25.0),
    ("cellar", 65, 13.0),
    ("cellar", 50, 12.0),  # late, and within the grace
    ("attic", 70, 27.0),
    ("cellar", 170, 11.5),
    ("cellar", 20, 99.0),  # too late: a dead letter
    ("cellar", 420, 12.5),
]
"""Sensor, second and temperature of each reading, in the order of arrival."""


def datagrams() -> list[bytes]:
    """Return the readings of the sample as sensors send them."""
    return [json.dumps({"sensor": name, "celsius": value, "at": at * 1000}).encode() for name, at, value in SAMPLE]


def report(tables: Mapping[str, Any]) -> None:
    """Print the average of each minute, and the sensors that are silent."""
    for window, average in sorted(tables["per_minute"].items(), key=lambda row: (row[0].key, row[0].start_ms)):
        print(f"{window.key} minute {window.start_ms // 60_000}: {average:.1f}")
    for sensor, since in tables["silent_since"].all().items():
        print(f"{sensor} is silent since second {since // 1000}")


def main() -> None:
    """Send the sample to a gateway over UDP, run the program to its end, and print the tables."""
    with TemporaryDirectory() as log:
        with Gateway(log, [LISTENER]) as gateway, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sensor:
            host, _, port = gateway.address("readings").rpartition(":")
            for datagram in datagrams():
                sensor.sendto(datagram, (host, int(port)))
            while gateway.counts("readings").landed < len(SAMPLE):
                time.sleep(0.01)
        potok.run(builder, broker=log, until_end=True)
        with potok.open_tables(log, "iot") as tables:
            report(tables)


if __name__ == "__main__":
    main()
