"""A program in Faust's style that gets killed: two agents that share a table, one of them sends."""

from __future__ import annotations

import sys
from typing import Any

import potok.faust as faust

app = faust.App("killed-app")
numbers, large = app.topic("numbers"), app.topic("large")
counts, sums = app.Table("counts", default=int), app.Table("sums", default=lambda: {"sum": 0})


@app.agent(numbers)
async def count(stream: Any) -> None:
    async for number in stream:
        counts[f"k{number % 50}"] += 1
        if number % 10 == 0:
            await large.send(key=f"k{number % 50}", value=number)


@app.agent(numbers)
async def add(stream: Any) -> None:
    async for number in stream:
        sums[f"k{number % 50}"]["sum"] += number + counts[f"k{number % 50}"]


if __name__ == "__main__":
    import potok

    potok.run(app, broker=sys.argv[1], shards=2, until_end=True, max_batch_records=int(sys.argv[2]))
