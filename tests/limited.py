"""Python code in a process that may take only so much memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_LIMIT = """
import json, resource, sys
def limit(megabytes):
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (megabytes << 20),) * 2)
given = json.load(sys.stdin)
"""


def run_limited(code: str, given: Any) -> Any:
    """What `code` prints as JSON. It finds `given`, and calls `limit(megabytes)` when it has imported what it needs."""
    path = os.pathsep.join([str(_ROOT / "src"), str(_ROOT / "tests"), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _LIMIT + code],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        env=environment,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)
