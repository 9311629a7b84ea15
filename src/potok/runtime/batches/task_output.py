"""Output that stays where the tasks of a batch produced it, so that only reports pass through the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from potok.errors import PotokError
from potok.log.broker import Slots, Staged
from potok.operators.core.task_report import Report
from potok.records.position import Position
from potok.runtime.batches.failure_cause import QueryFailed, described
from potok.runtime.batches.task import Item


def without_output(items: Iterable[Item]) -> Iterator[Item]:
    """Replace output that tasks publish by its record counts in the reports of tasks."""
    for task, data in items:
        report = pickle.loads(data)
        if isinstance(report, Report) and any(staged.by_task for staged in report.staged):
            yield task, pickle.dumps(_light(report))
        else:
            yield task, data


def _light(report: Report) -> Report:
    mine = [staged for staged in report.staged if staged.by_task]
    light = replace(report, staged=[staged for staged in report.staged if not staged.by_task])
    for staged in mine:
        light.kept[staged.topic] += staged.count
    return light


def by_slot(slots: Slots, index: int, items: Iterable[Item]) -> Iterator[Item]:
    """Return the output of a task, each piece with its slot and its place in the order of all output.

    Raise the error of a task that Spark has run again because an executor was lost: its output is incomplete, so no
    slot may be published.
    """
    number = 0
    for _, data in items:
        report = pickle.loads(data)
        if isinstance(report, PotokError):
            raise report
        if isinstance(report, Report):
            for staged in report.staged:
                if staged.by_task:
                    yield slots.slot_of(staged), pickle.dumps((index, number, staged))
                    number += 1


def publish_slot(slots: Slots, slot: int, items: Iterable[Item]) -> Iterator[bytes]:
    """Publish the output of one slot; return the position after it, or an error, as bytes."""
    found: list[tuple[int, int, Staged]] = [pickle.loads(data) for _, data in items]
    if not found:
        return
    ordered = [staged for _, _, staged in sorted(found, key=lambda one: one[:2])]
    try:
        yield pickle.dumps(slots.publish(slot, ordered))
    except PotokError as error:
        yield pickle.dumps(error)
    except Exception as error:  # noqa: BLE001 - raised by the driver
        yield pickle.dumps(QueryFailed("", described(error)))


def position_after(results: Iterable[bytes]) -> Position:
    """Return the position after the output of all slots; raise the first error."""
    position = Position()
    for data in results:
        found = pickle.loads(data)
        if isinstance(found, BaseException):
            raise found
        position |= found
    return position


class InProcessOutput:
    """Output of tasks that ran in this process."""

    def __init__(self, items: Sequence[Sequence[Item]], report: Report) -> None:
        self._items, self._topics = items, sorted(report.kept)

    @property
    def topics(self) -> Sequence[str]:
        return self._topics

    def publish(self, slots: Slots) -> Position:
        divided: list[list[Item]] = [[] for _ in range(slots.count)]
        for index, items in enumerate(self._items):
            for slot, data in by_slot(slots, index, items):
                divided[slot].append((slot, data))
        return position_after(data for slot, items in enumerate(divided) for data in publish_slot(slots, slot, items))

    def release(self) -> None:
        """Do nothing: the output is in memory of this process."""
