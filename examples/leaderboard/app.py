"""The best three players of each day, maintained as points arrive."""

from collections.abc import Mapping
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import Any

import potok
from potok import Producer, StreamsBuilder, tumbling

N = 3


def best(day: int, change: dict[str, Any], board: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the board after a total has changed. Totals only grow, so the other players can be forgotten."""
    totals = {row["player"]: row["total"] for row in board} | {change["player"]: change["total"]}
    ranked = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:N]
    return [{"player": player, "total": total} for player, total in ranked]


builder = StreamsBuilder("leaderboard")
points = builder.stream("points", value="player string, points bigint")
per_day = points.group_by("player").windowed_by(tumbling("1 day", grace="1 hour")).sum("points", name="totals")
changes = per_day.to_stream().map(
    lambda window, total: (window["start"], {"player": window["key"], "total": total}),
    key=int,
    value="player string, total bigint",
)
changes.group_by_key().aggregate(initializer=list, aggregator=best, name="leaderboard")

SAMPLE = [
    ("ann", 8, 40),
    ("bob", 9, 70),
    ("cid", 10, 10),
    ("dan", 11, 30),
    ("cid", 12, 90),
    ("eve", 26, 5),
    ("ann", 27, 60),
]
"""Player, hour and points."""


def records() -> list[tuple[dict[str, object], int]]:
    """Return the value and the timestamp of each record of the sample."""
    return [({"player": player, "points": number}, hour * 3_600_000) for player, hour, number in SAMPLE]


def report(tables: Mapping[str, Any]) -> None:
    """Print the board of each day."""
    for day, board in sorted(tables["leaderboard"].all().items()):
        date = datetime.fromtimestamp(day / 1000, UTC).date()
        print(date, ", ".join(f"{row['player']} {row['total']}" for row in board))


def main() -> None:
    """Send the sample to an empty log, run the program to its end, and print the boards."""
    with TemporaryDirectory() as log:
        with Producer(log) as producer:
            for value, at in records():
                producer.send("points", value, timestamp=at)
        potok.run(builder, broker=log, until_end=True)
        with potok.open_tables(log, "leaderboard") as tables:
            report(tables)


if __name__ == "__main__":
    main()
