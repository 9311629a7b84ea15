"""Taking records of a queue: which ones, and reading them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from potok.log.broker import Broker
from potok.log.clients.consumed_record import ConsumedRecord, records_of
from potok.log.errors import OffsetOutOfRange
from potok.log.queues.queue_state import Run
from potok.log.queues.queue_store import Page

Claims = list[tuple[int, Run]]
"""Runs that are out, with their partitions."""

_NEAR = 1_000


@dataclass(frozen=True, slots=True)
class Wish:
    """What a worker asks for: so many records, and so many `ahead` of its next wish; they are its own for a while.

    Partition number `turn` comes first: workers that begin at different ones rarely get into each other's way.
    """

    most: int
    ahead: int
    turn: int
    now_ms: int
    due_ms: int


def claim(topic: str, ends: Mapping[int, int], wish: Wish, page: Page) -> Claims:
    """Mark records of the page as out."""
    claims: Claims = []
    numbers = sorted(page.states)
    turn, most, ahead = wish.turn % len(numbers), wish.most, wish.ahead
    for partition in (*numbers[turn:], *numbers[:turn]):
        state, end = page.states[partition], ends.get(partition, 0)
        if state.next > end:
            # The log is shorter than it was: somebody put back an old copy.
            raise OffsetOutOfRange(topic, partition, (state.next, state.next), (0, end))
        for run in state.claim(wish.now_ms, most, ahead, end, wish.due_ms):
            claims.append((partition, run))
            if run.deliveries:
                most -= run.end - run.first
            else:
                ahead -= run.end - run.first
    return claims


def read_runs(broker: Broker, topic: str, partition: int, runs: Sequence[Run]) -> Iterator[ConsumedRecord]:
    """The records of runs, given in order, and of what lies between them where that is not much."""
    at = 0
    while at < len(runs):
        last = at
        while last + 1 < len(runs) and runs[last + 1].first - runs[last].end <= _NEAR:
            last += 1
        for batch in broker.read(topic, partition, runs[at].first, runs[last].end):
            yield from records_of(batch, (topic, partition))
        at = last + 1
