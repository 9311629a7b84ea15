"""Claim and read records of a queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from potok.log.broker import Broker
from potok.log.clients.consumed_record import ConsumedRecord, records_of
from potok.log.errors import OffsetOutOfRange
from potok.log.queues.queue_state import Run
from potok.log.queues.queue_store import Page

Claims = list[tuple[int, Run]]
"""Claimed runs, with their partitions."""

_NEAR = 1_000


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A request of a worker: a number of records, and `ahead` more for its next requests.

    Partition number `turn` is tried first: workers that start at different partitions rarely conflict.
    """

    most: int
    ahead: int
    turn: int
    now_ms: int
    due_ms: int


def claim(topic: str, ends: Mapping[int, int], request: ClaimRequest, page: Page) -> Claims:
    """Claim records of the page."""
    claims: Claims = []
    numbers = sorted(page.states)
    turn, most, ahead = request.turn % len(numbers), request.most, request.ahead
    for partition in (*numbers[turn:], *numbers[:turn]):
        state, end = page.states[partition], ends.get(partition, 0)
        if state.next > end:
            # The log is shorter than before: an old copy was restored.
            raise OffsetOutOfRange(topic, partition, (state.next, state.next), (0, end))
        for run in state.claim(request.now_ms, most, ahead, end, request.due_ms):
            claims.append((partition, run))
            if run.deliveries:
                most -= run.end - run.first
            else:
                ahead -= run.end - run.first
    return claims


def read_runs(broker: Broker, topic: str, partition: int, runs: Sequence[Run]) -> Iterator[ConsumedRecord]:
    """Yield the records of runs, given in order, reading across small gaps."""
    at = 0
    while at < len(runs):
        last = at
        while last + 1 < len(runs) and runs[last + 1].first - runs[last].end <= _NEAR:
            last += 1
        for batch in broker.read(topic, partition, runs[at].first, runs[last].end):
            yield from records_of(batch, (topic, partition))
        at = last + 1
