"""Whatever a program keeps: half of the records, then another number of shards, then the rest, is as if all had come to
the shards there were first.

`POTOK_EXAMPLES=500 POTOK_SEED=7` explores further than the default, which is the same on every run.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from potok.runtime.operations.reshard import reshard
from potok.topology.inference.infer import infer
from potok.topology.pruning import used_fields
from tests.operators.core.in_process import InProcess
from tests.oracle import recompute
from tests.properties.cases import Case, cases
from tests.properties.compare import differences, made_by

EXAMPLES = int(os.environ.get("POTOK_EXAMPLES", "40"))
SEED = os.environ.get("POTOK_SEED")
PHASES = [Phase.generate, *([Phase.shrink] if os.environ.get("POTOK_SHRINK") else [])]


def play(case: Case, shards: list[int]) -> list[str]:
    """What differs from the oracle's answer, with so many shards after each run."""
    with tempfile.TemporaryDirectory() as folder:
        builder = case.load(Path(folder, "program.py"))
        topology = builder.build()
        fields = {source.topic: used for source, used in used_fields(topology, infer(topology)).items()}
        expected = recompute(topology, case.inputs, fields=fields)
        with InProcess(builder, partitions=case.partitions, shards=case.shards, spread=case.spread) as driver:
            for run, count in zip(case.runs, shards, strict=True):
                for send in run.sends:
                    read = send.record
                    at = {"timestamp": read.timestamp_ms, "partition": send.partition}
                    driver.send(send.topic, read.value, key=read.key, headers={"source": send.tag}, **at)
                driver.run(batch_records=run.batch_records)
                driver._prepared.release()
                reshard(driver._topology, driver.broker, count)
                driver._begin()
            return differences(made_by(driver, expected), expected)


@pytest.mark.timeout(60 * 60)
@settings(
    max_examples=EXAMPLES,
    derandomize=SEED is None,
    database=None,
    deadline=None,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
@given(case=cases().filter(lambda case: len(case.runs) > 1), shards=st.lists(st.integers(1, 4), min_size=3, max_size=3))
def test_the_number_of_shards_may_change_between_two_runs(case: Case, shards: list[int]) -> None:
    found = play(case, shards[: len(case.runs)])

    assert not found, "\n".join([f"with POTOK_SEED={SEED} and shards {shards}:", *found])


if SEED is not None:
    seed(int(SEED))(test_the_number_of_shards_may_change_between_two_runs)
