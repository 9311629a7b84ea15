"""Sessions of a web shop: visits per user, what they saw, and whether they bought something."""

from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

import potok
from potok import Producer, StreamsBuilder, session

builder = StreamsBuilder("clickstream")
clicks = builder.stream("clicks", value="user string, page string")

visits = (
    clicks.group_by("user")
    .windowed_by(session("30 minutes", grace="5 minutes"))
    .emit_final()
    .collect_list("page", name="visits")
    .to_stream()
    .map(
        lambda window, pages: (
            window["key"],
            {
                "clicks": len(pages),
                "minutes": (window["end"] - window["start"]) // 60_000,
                "entry": pages[0],
                "exit": pages[-1],
                "bought": "/thanks" in pages,
            },
        ),
        key=str,
        value="clicks bigint, minutes bigint, entry string, exit string, bought boolean",
    )
)
visits.to("visits")

visits.group_by("entry").aggregate(
    initializer={"visits": 0, "bought": 0},
    aggregator=lambda visit, sums: {
        "visits": sums["visits"] + 1,
        "bought": sums["bought"] + (1 if visit["bought"] else 0),
    },
    name="conversion",
)

SAMPLE = [
    ("ann", 0, "/"),
    ("ann", 4, "/lamps"),
    ("bob", 5, "/lamps"),
    ("ann", 3, "/search"),
    ("ann", 9, "/cart"),
    ("ann", 11, "/thanks"),
    ("bob", 20, "/lamps/7"),
    ("cid", 31, "/"),
    ("bob", 70, "/"),
    ("end", 240, "/"),
]
"""User, minute and page of each click; one arrives late. The last one closes the sessions before it."""


def records() -> list[tuple[dict[str, object], int]]:
    """Return the value and the timestamp of each record of the sample."""
    return [({"user": user, "page": page}, minute * 60_000) for user, minute, page in SAMPLE]


def report(tables: Mapping[str, Any]) -> None:
    """Print how many of the visits that began on a page ended with a purchase."""
    for page, sums in sorted(tables["conversion"].all().items()):
        print(f"{page}: {sums['visits']} visits, {sums['bought']} bought")


def main() -> None:
    """Send the sample to an empty log, run the program to its end, and print the table."""
    with TemporaryDirectory() as log:
        with Producer(log) as producer:
            for value, at in records():
                producer.send("clicks", value, timestamp=at)
        potok.run(builder, broker=log, until_end=True)
        with potok.open_tables(log, "clickstream") as tables:
            report(tables)


if __name__ == "__main__":
    main()
