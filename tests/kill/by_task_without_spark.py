"""`without_spark` whose executor is a cluster, as far as the driver knows: tasks publish their output themselves."""

from __future__ import annotations

import sys

from potok.runtime.batches.in_process_executor import InProcessExecutor
from tests.kill import orders_program, without_spark


class Cluster(InProcessExecutor):
    master = "spark://cluster:7077"


if __name__ == "__main__":
    without_spark.main(sys.argv[1], int(sys.argv[2]), sys.argv[3], orders_program.build, Cluster())
