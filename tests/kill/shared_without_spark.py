"""`shared_program` with its batches in one process, and no Spark: the same steps, and back in two seconds."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.kill import orders_program
from tests.kill.shared_program import PREFIXES


def main(url: str, batch: int) -> None:
    # The stand-in for a shared query, and what it imports, are found as they are by the tests beside it.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from runtime.queries.by_hand import ByHand

    shared = ByHand(Path(url.removeprefix("file:")), max_batch_records=batch)
    for each in PREFIXES[:2]:
        shared.add(orders_program.build(each))
    shared.step()
    shared.add(orders_program.build(PREFIXES[2]))
    shared.settle()
    shared.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
