"""Dead letters, replays and purges as plain data, ready for JSON."""

from __future__ import annotations

from typing import Any

from potok.dead_letters.read import DeadLetter, Fate
from potok.dead_letters.replay import Replay
from potok.log.plain_records import record_as_object
from potok.records.log_record import LogRecord


def dead_letter_as_object(query: str, dead_letter: DeadLetter, fate: Fate) -> dict[str, Any]:
    """Return the original record as `potok consume --json` prints it, with its state."""
    headers = tuple((name, value or b"") for name, value in dead_letter.headers)
    position = (dead_letter.topic, dead_letter.partition, dead_letter.offset)
    record = LogRecord(dead_letter.key, dead_letter.value, dead_letter.timestamp_ms, headers, *position)
    return {
        "query": query,
        "position": show_position(dead_letter),
        "state": fate.value,
        "set_aside_at_ms": dead_letter.set_aside_at_ms,
        "reason": dead_letter.reason,
        "step": dead_letter.step,
        "error": dead_letter.error,
        "replays": dead_letter.replays,
        "altered": dead_letter.altered,
        "topic": dead_letter.topic,
        **record_as_object(record),
    }


def replay_as_object(query: str, replay: Replay, *, done: bool) -> dict[str, Any]:
    positions = sorted(replay.appended.items())
    return {
        "query": query,
        "done": done,
        "dead_letters": replay.dead_letters,
        "records": replay.records,
        "partitions": [{"topic": topic, "partition": part, "records": count} for (topic, part), count in positions],
        "left": dict(replay.left),
    }


def show_position(dead_letter: DeadLetter) -> str:
    partition, offset = dead_letter.position
    return f"{partition}:{offset}"
