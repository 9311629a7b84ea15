"""The transactions in which the tasks of a batch publish its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from potok.log.broker import PublishedBatch, Staged
from potok.log.kafka.fences import SLOTS, slot_of
from potok.records.position import Position


class SlotPublisher(Protocol):
    """The broker of a task."""

    def publish_slot(self, slots: KafkaSlots, slot: int, staged: Sequence[Staged]) -> Position:
        """Publish the output of one slot."""


@dataclass(frozen=True, slots=True)
class KafkaSlots:
    """The output of one batch in slots. All of a topic partition is in one slot, and each slot has one transaction,
    which contains a fence: a repeated batch skips the slots that are visible already.

    Transactional ids are fixed, and tasks check that the ledger is unchanged (`expect`) before and after they fence
    another producer. So a task of a driver that was replaced cannot write.
    """

    broker: SlotPublisher
    batch: PublishedBatch
    life: str
    expect: Mapping[str, bytes | None]
    count: int = SLOTS

    def slot_of(self, staged: Staged) -> int:
        return slot_of(staged.topic, staged.partition)

    def publish(self, slot: int, staged: Sequence[Staged]) -> Position:
        return self.broker.publish_slot(self, slot, staged)
