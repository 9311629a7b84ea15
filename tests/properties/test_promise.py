"""The final tables and the append streams are the same whatever the batches, the shards and the restarts.

`POTOK_EXAMPLES=500 POTOK_SEED=7 POTOK_SHRINK=1` explores further than the default, which is the same on every run.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.properties.cases import Case, cases
from tests.properties.play import play

EXAMPLES = int(os.environ.get("POTOK_EXAMPLES", "40"))
SEED = os.environ.get("POTOK_SEED")
PHASES = [Phase.generate, *([Phase.shrink] if os.environ.get("POTOK_SHRINK") else [])]


@pytest.mark.spark
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
@given(case=cases())
def test_tables_and_streams_do_not_depend_on_batches_shards_and_restarts(case: Case) -> None:
    found = play(case)

    assert not found, "\n".join([f"with POTOK_SEED={SEED}:", *found])


if SEED is not None:
    seed(int(SEED))(test_tables_and_streams_do_not_depend_on_batches_shards_and_restarts)
