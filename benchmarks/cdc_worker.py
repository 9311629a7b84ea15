"""Run a capture in a process of its own until it has landed so many changes or rows of a snapshot.

Prints the seconds from the end of the first batch to the end of the last, and what landed between the two.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources.cdc.runner import CaptureRunner
from potok.topology.capture import Capture

LOOK_S = 0.001


def landed(runner: CaptureRunner) -> int:
    status = runner.status()
    return status.changes + sum(each.rows for each in status.snapshots.values())


def main() -> None:
    url, mode, wanted, directory = sys.argv[1:]
    snapshot = "initial" if mode == "snapshot" else "never"
    capture = Capture(url=url, tables=("users",), name=mode, snapshot=snapshot)
    with CaptureRunner(capture, EmbeddedBroker(Path(directory) / mode)) as runner:
        if not int(wanted):
            while runner.status().state != "streaming":
                time.sleep(LOOK_S)
            return
        first = 0, 0.0
        while (found := landed(runner)) < int(wanted):
            if runner.error is not None:
                raise runner.error
            if not first[0] and found:
                first = found, time.perf_counter()
            time.sleep(LOOK_S)
        print("MEASURED", time.perf_counter() - first[1], found - first[0], flush=True)


if __name__ == "__main__":
    main()
