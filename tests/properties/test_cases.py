"""The random cases stay inside the promise, which the oracle alone can tell."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.oracle import recompute
from tests.oracle.turns import does_not_wait, partition_order
from tests.properties.cases import Case, cases
from tests.properties.compare import differences


@settings(max_examples=150, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases(), data=st.data())
def test_a_case_means_the_same_however_its_partitions_interleave(case: Case, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        topology = case.load(Path(folder, "program.py")).build()
    # The records of a stream-table join that does not wait have one order.
    assume(not any(map(does_not_wait, topology)))
    one_after_the_other = recompute(topology, case.inputs)
    turns = data.draw(st.permutations(partition_order(case.inputs)))

    assert not differences(recompute(topology, case.inputs, turns=turns), one_after_the_other)
