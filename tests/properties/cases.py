"""A case: a program, its records, and how they are cut into runs, batches and shards; it can be shown as a script."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.oracle import Input
from tests.properties.inputs import inputs
from tests.properties.joins import write_join, write_lookup
from tests.properties.programs import Program, Writer
from tests.properties.steps import write_step
from tests.properties.tables import write_aggregate, write_table_source, write_to_table


@dataclass(frozen=True)
class Send:
    topic: str
    partition: int
    offset: int
    record: Input

    @property
    def tag(self) -> bytes:
        """The header `source`, which tells what an output record was made of."""
        return f"{self.topic}/{self.partition}/{self.offset}".encode()


@dataclass(frozen=True)
class Run:
    """Send these, run to the end in batches of at most so many records, and perhaps start again."""

    sends: list[Send]
    batch_records: int
    restart: bool


@dataclass(frozen=True)
class Case:
    program: str
    partitions: dict[str, int]
    shards: int
    spread: bool
    runs: list[Run]

    @property
    def inputs(self) -> dict[str, dict[int, list[Input]]]:
        filled: dict[str, dict[int, list[Input]]] = {topic: {} for topic in self.partitions}
        for run in self.runs:
            for send in run.sends:
                filled[send.topic].setdefault(send.partition, []).append(send.record)
        return filled

    def load(self, file: Path) -> Any:
        """The builder of the program, run from a file so that places in it and the code of its lambdas can be found."""
        file.write_text(self.program)
        # No module of this name can be imported, so the functions travel to Spark's workers by value.
        names: dict[str, Any] = {"__name__": "program_of_a_case"}
        exec(compile(self.program, str(file), "exec", dont_inherit=True), names)
        return names["builder"]

    def script(self) -> str:
        """The whole case as a program that stands alone."""
        lines = [
            self.program,
            "from potok.testing import TestDriver",
            f"options = dict(partitions={self.partitions}, shards={self.shards}, spread={self.spread})",
            "with TestDriver(builder, **options) as driver:",
        ]
        for run in self.runs:
            for send in run.sends:
                read = send.record
                options = f"key={read.key!r}, timestamp={read.timestamp_ms}, partition={send.partition}"
                lines.append(f"    driver.send({send.topic!r}, {read.value!r}, {options})")
            lines.append(f"    driver.run(batch_records={run.batch_records})")
            lines += ["    driver.restart()"] if run.restart else []
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis shows a case."""
        printer.text(f"\n{self.script()}\n")


@st.composite
def programs(draw: st.DrawFn) -> Program:
    writer = Writer(draw)
    writer.source()
    for _ in range(draw(st.integers(1, 6))):
        write = (
            [write_step] * 5 + [write_aggregate] * 4 + [write_to_table, write_table_source, write_join, write_lookup]
        )
        writer.pick(write)(writer)
    for stream in writer.streams:
        if stream.name not in writer.used:
            writer.line(f'{stream.name}.to("{writer.new("out-")}")')
    return writer.program


@st.composite
def cases(draw: st.DrawFn) -> Case:
    program = draw(programs())
    filled = draw(inputs(program))
    partitions = {topic.name: topic.partitions for topic in program.topics.values()}
    count = 1 if program.all_at_once else draw(st.sampled_from([1, 1, 2, 3]))
    cuts = sorted(draw(st.lists(st.integers(0, 100), min_size=count - 1, max_size=count - 1)))
    runs = []
    for low, high in zip([-1, *cuts], [*cuts, 100], strict=True):
        sends = _slice(filled, low, high, program.windowed)
        batches = draw(st.integers(1, 5))
        runs.append(Run(sends, max(1, math.ceil(len(sends) / batches)), draw(st.booleans()) if count > 1 else False))
    return Case(program.text, partitions, draw(st.integers(1, 3)), draw(st.booleans()), runs)


def _slice(filled: dict[str, dict[int, list[Input]]], low: int, high: int, started: bool) -> list[Send]:
    """The records between two percentages of each partition; with `started`, the first slice has its first record."""
    sends = []
    for topic, partitions in filled.items():
        for partition, records in partitions.items():
            least = 1 if started else 0
            start = 0 if low < 0 else max(least, len(records) * low // 100)
            stop = max(least, len(records) * high // 100)
            sends += [
                Send(topic, partition, offset, records[offset]) for offset in range(start, min(stop, len(records)))
            ]
    return sends
