"""Plays a case on Spark and compares what comes of it with the oracle's answer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from potok.testing import TestDriver
from potok.topology.inference.infer import infer
from potok.topology.pruning import used_fields
from tests.oracle import recompute
from tests.properties.cases import Case
from tests.properties.compare import differences, made_by


def play(case: Case, drive: Callable[..., TestDriver] = TestDriver) -> list[str]:
    """What differs; empty if the promise is kept."""
    with tempfile.TemporaryDirectory() as folder:
        builder = case.load(Path(folder, "program.py"))
        topology = builder.build()
        fields = {source.topic: used for source, used in used_fields(topology, infer(topology)).items()}
        expected = recompute(topology, case.inputs, fields=fields)
        with drive(builder, partitions=case.partitions, shards=case.shards, spread=case.spread) as driver:
            for run in case.runs:
                for send in run.sends:
                    read = send.record
                    at = {"timestamp": read.timestamp_ms, "partition": send.partition}
                    driver.send(send.topic, read.value, key=read.key, headers={"source": send.tag}, **at)
                driver.run(batch_records=run.batch_records)
                if run.restart:
                    driver.restart()
            return differences(made_by(driver, expected), expected)
