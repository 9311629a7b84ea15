"""Records that do not decode, in every format there is: each is a dead letter, and the others go on."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from typing import Any

from potok import StreamsBuilder
from potok.log.open import open_broker
from potok.records.formats import registry as formats
from potok.records.formats.registered.declare import REGISTERED
from potok.records.log_record import LogRecord
from potok.testing.outputs import read_dead_letters, read_outputs
from tests.faults.row import Proof, row
from tests.faults.scene import Scene
from tests.kill.answer import same

NOT_OF_VALUES = {"windowed", "session", "none", "cloudevents", *REGISTERED}
"""Formats that no value has, that read none, that only SQL names, or that need a registry and have tests with one."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A type, how a number is written in a format, and what does not decode there."""

    value: Any
    good: Any
    poison: tuple[bytes, ...]


CHANGES = (b"{", b"[]", b'{"op":"c","after":{"n":"x"}}')

SAMPLES = {
    "json": Sample("n bigint", lambda n: b'{"n": %d}' % n, (b"{", b'{"n": "x"}', b"\xff", b"[]")),
    "delimited": Sample("n bigint, m bigint", lambda n: b"%d,%d" % (n, n), (b"x,1", b'"1', b"\xff,1")),
    "text": Sample(str, lambda n: b"%d" % n, (b"\xff\xfe", b"\xc3\x28")),
    "int32": Sample(int, lambda n: struct.pack(">i", n), (b"", b"\x00", bytes(8))),
    "int64": Sample(int, lambda n: struct.pack(">q", n), (b"\x00", bytes(4), bytes(9))),
    "float32": Sample(float, lambda n: struct.pack(">f", n), (b"\x00", bytes(8))),
    "float64": Sample(float, lambda n: struct.pack(">d", n), (b"\x00", bytes(4))),
    "raw": Sample(bytes, lambda n: b"%d" % n, ()),
    "sql_json": Sample("N bigint", lambda n: b'{"n": %d}' % n, (b"{", b'{"N": "x"}', b"\xff", b"[]")),
    "sql_delimited": Sample("N bigint, M bigint", lambda n: b"%d,%d" % (n, n), (b"x,1", b"1", b"1,2,3")),
    "kafka": Sample(int, lambda n: struct.pack(">q", n), (b"\x00", bytes(4), bytes(9))),
    "avro": Sample("N bigint", lambda n: bytes((2, 2 * n)), (b"\x02", b"\x06\x00", b"\x02\x80")),
    "protobuf": Sample("N bigint", lambda n: bytes((8, n)), (b"\x08", b"\xff", b"\x0a\x05x")),
    "protobuf_nosr": Sample("N bigint", lambda n: bytes((8, n)), (b"\x08", b"\xff", b"\x0a\x05x")),
    "debezium": Sample(
        "n bigint", lambda n: b'{"op":"c","after":{"n":%d}}' % n, (*CHANGES, b'{"op":"q","after":null}')
    ),
    "debezium_envelope": Sample(
        "op string, after struct<n bigint>", lambda n: b'{"op":"c","after":{"n":%d}}' % n, CHANGES
    ),
    "debezium_key": Sample(int, lambda n: b'{"key":%d}' % n, (b"{", b'{"key":"x"}', b"\xff", b'{"a":1,"b":2}')),
}


def build(prefix: str) -> StreamsBuilder:
    builder = StreamsBuilder(f"{prefix}poisoned")
    for name, sample in SAMPLES.items():
        values = builder.stream(f"{prefix}{name}", value=sample.value, value_format=name)
        # Every field is looked at: what nobody looks at is not decoded, and cannot be wrong.
        values.filter(lambda v: v is not None).to(f"{prefix}{name}-out", value_format=name)
    return builder


@row("poison", "records that do not decode, in each format")
def poison(scene: Scene) -> Proof:
    missing = set(formats._FORMATS) - NOT_OF_VALUES - set(SAMPLES)
    assert not missing, f"no poison for {missing}"
    prefix, url = f"{scene.name}-", f"file:{scene.directory / 'data'}"
    good: dict[str, Counter[bytes]] = {}
    dead: Counter[tuple[str, int]] = Counter()
    broker = open_broker(url)
    for name, sample in SAMPLES.items():
        values = [sample.good(number) for number in range(60)] + list(sample.poison)
        scene.random.shuffle(values)
        good[name] = Counter(value for value in values if value not in sample.poison)
        dead.update((f"{prefix}{name}", offset) for offset, value in enumerate(values) if value in sample.poison)
        broker.create_topic(f"{prefix}{name}", 1)
        broker.append(f"{prefix}{name}", [LogRecord(None, value, 1_000) for value in values])
    broker.close()
    settings = {"broker": url, "max_batch_records": 200}
    scene.ended(scene.start("tests.faults.rows.poison:build", {"prefix": prefix}, settings)).must_be_well()
    broker = open_broker(url)
    for name in SAMPLES:
        found = Counter(record.raw_value for record in read_outputs(broker, f"{prefix}{name}-out"))
        same(f"topic {name}-out", found, good[name])
    letters = read_dead_letters(broker, f"{prefix}poisoned-dead-letters")
    broker.close()
    same("dead letters", Counter((letter.topic, letter.offset) for letter in letters), dead)
    return Proof(f"{dead.total()} dead letters, {60 * len(SAMPLES)} records that went on, in {len(SAMPLES)} formats")
