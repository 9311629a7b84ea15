"""Encode runs as columns: of many runs, those are packed several times as fast as a list for each. Each link and each
record is stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

from potok.operators.patterns.runs import Link, Row, Run, Segment

DueOf = Callable[[Run], int | None]
"""When the first thread of a run is over."""


def pack(runs: Sequence[Run]) -> list[Any]:
    """Return the columns of runs: positions, records, links, runs, and what ended runs have found."""
    links = _links(runs)
    ways = {id(link): way for way, link in enumerate(links)}
    befores, variables, taken_rows = map(list, zip(*links, strict=True)) if links else ([], [], [])
    first = {row[0]: row for row in taken_rows} | {run.start.number: run.start for run in runs}
    rows = {number: row for row, number in enumerate(first)}
    columns = map(list, zip(*first.values(), strict=True)) if first else [[] for _ in Row._fields]
    numbers, times, values, topics, partitions, offsets = columns
    places = {place: number for number, place in enumerate(dict.fromkeys(zip(topics, partitions, strict=True)))}
    at = [places[place] for place in zip(topics, partitions, strict=True)] if len(places) > 1 else [0] * len(rows)
    threads = [thread for run in runs for thread in run.threads]
    return [
        [list(place) for place in places],
        [numbers, times, values, at, offsets],
        [
            [-1 if before is None else ways[id(before)] for before in befores],
            variables,
            [rows[row[0]] for row in taken_rows],
        ],
        [
            [rows[run.start.number] for run in runs],
            [len(run.threads) for run in runs],
            [state for state, _ in threads],
            [ways[id(link)] for _, link in threads],
        ],
        [
            [
                index,
                -1 if run.found is None else ways[id(run.found)],
                run.found_at,
                -1 if run.over is None else ways[id(run.over)],
                run.over_at,
            ]
            for index, run in enumerate(runs)
            if run.found is not None or run.over is not None
        ],
    ]


def unpack(columns: Sequence[Any]) -> list[Run]:
    """Return the runs of `pack`."""
    places, kept_rows, kept_links, kept_runs, ended = columns
    *parts, at, offsets = kept_rows
    topics, partitions = [[places[one][part] for one in at] for part in (0, 1)]
    rows = list(map(Row, *parts, topics, partitions, offsets))
    links: list[Link] = []
    for before, variable, row in zip(*kept_links, strict=True):
        links.append(Link(None if before < 0 else links[before], variable, rows[row]))
    starts, lengths, states, ways = kept_runs
    threads = list(zip(states, [links[way] for way in ways], strict=True))
    ends = list(accumulate(lengths))
    runs = [
        Run(rows[start], threads[end - length : end]) for start, length, end in zip(starts, lengths, ends, strict=True)
    ]
    for index, found, found_at, over, over_at in ended:
        run = runs[index]
        run.found, run.found_at = None if found < 0 else links[found], found_at
        run.over, run.over_at = None if over < 0 else links[over], over_at
    return runs


def describe_segment(segment: Segment, due_of: DueOf | None) -> list[Any]:
    """Return what a head says of a segment."""
    if segment.runs is not None:
        runs = segment.runs.values()
        first = next(iter(runs)).start
        segment.size, segment.first, segment.first_time = len(runs), first.number, first.time
        segment.states = tuple(sorted({state for run in runs for state, _ in run.threads}))
        segment.idle = not all(run.threads for run in runs)
        if due_of is not None:
            segment.due = min((due for run in runs if (due := due_of(run)) is not None), default=None)
    kept = (segment.number, segment.size, segment.first, segment.first_time, segment.due)
    return [*kept, list(segment.states), segment.idle]


def described_segment(described: Sequence[Any]) -> Segment:
    """Return the segment of `describe_segment`, which is not read."""
    number, size, first, first_time, due, states, idle = described
    return Segment(number, None, size, first, first_time, due, tuple(states), idle)


def _links(runs: Iterable[Run]) -> list[Link]:
    """Return all links, each once and behind the one before it."""
    found: dict[int, Link] = {}
    for run in runs:
        for _, link in run.threads:
            if id(link) not in found:
                _add_chain(link, found)
        for ended in (run.found, run.over):
            if ended is not None:
                _add_chain(ended, found)
    return list(found.values())


def _add_chain(link: Link, found: dict[int, Link]) -> None:
    """Add a link by its identity, and before it those that lead to it."""
    if link.before is None:
        found.setdefault(id(link), link)
        return
    chain: list[Link] = []
    one: Link | None = link
    while one is not None and id(one) not in found:
        chain.append(one)
        one = one.before
    for part in reversed(chain):
        found[id(part)] = part
