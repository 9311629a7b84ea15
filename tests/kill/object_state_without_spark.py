"""`without_spark` with snapshots of the state every few deltas."""

from __future__ import annotations

import os
import sys

from potok.state.objects import object_store
from tests.kill.without_spark import main

object_store.MOST_DELTAS = 3

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], state=os.environ["POTOK_STATE"])
