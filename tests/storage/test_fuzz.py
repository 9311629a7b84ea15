"""Whatever is damaged in a data directory, reads return correct data or an error with a hint.

`POTOK_EXAMPLES=2000 POTOK_SEED=7` runs more trials, with other seeds, than the default, which is the same on every
run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SEED = int(os.environ.get("POTOK_SEED", "1"))


@pytest.mark.parametrize(("scene", "usual"), [("shard", 60), ("directory", 25)])
@pytest.mark.timeout(36_000)
def test_a_damaged_file_gives_a_correct_result_or_an_error_with_a_hint(scene: str, usual: int) -> None:
    count = int(os.environ.get("POTOK_EXAMPLES", str(usual)))
    finished = subprocess.run(
        [sys.executable, "-m", "tests.storage.fuzz", scene, str(SEED * 1_000_000), str(count)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert f"{count} trials, 0 bad" in finished.stdout
