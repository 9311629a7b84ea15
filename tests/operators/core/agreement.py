"""Runs a program over records that fall into batches in several ways, and compares each with the oracle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.oracle import Input, recompute
from tests.properties.compare import differences, made_by

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder


@dataclass(frozen=True)
class Sent:
    """A record to be sent; a value of None is a tombstone."""

    topic: str
    key: Any
    value: Any
    at: int = 0
    partition: int = 0

    @property
    def input(self) -> Input:
        key = None if self.key is None else self.key.encode() if isinstance(self.key, str) else _json(self.key)
        return Input(key, None if self.value is None else _json(self.value), self.at)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def check(program: Callable[[StreamsBuilder], object], sent: list[Sent], seed: int = 0) -> None:
    """One batch, a batch per record, and random ones over several shards: all give what the oracle expects."""
    inputs: dict[str, dict[int, list[Input]]] = {}
    for one in sent:
        inputs.setdefault(one.topic, {}).setdefault(one.partition, []).append(one.input)
    for number, cuts in enumerate(ways(len(sent), Random(seed))):
        builder = StreamsBuilder("q")
        program(builder)
        expected = recompute(builder.build(), {topic: inputs.get(topic, {}) for topic in builder.build().source_topics})
        partitions = {topic: max(parts, default=0) + 1 for topic, parts in inputs.items()}
        with InProcess(builder, shards=number + 1, spread=number > 0, partitions=partitions) as driver:
            for start, stop in zip([0, *cuts], [*cuts, len(sent)], strict=True):
                for one in sent[start:stop]:
                    read = one.input
                    tag = {"source": b"x/0/0"}
                    driver.send(one.topic, read.value, read.key, timestamp=one.at, partition=one.partition, headers=tag)
                driver.run()
            found = differences(made_by(driver, expected), expected)
        assert not found, (f"cut at {cuts}", found)


def ways(count: int, random: Random) -> Iterator[list[int]]:
    """Where batches end: nowhere, after each record, and somewhere."""
    yield []
    yield list(range(1, count))
    yield sorted(random.sample(range(1, count), min(count - 1, 4)))
