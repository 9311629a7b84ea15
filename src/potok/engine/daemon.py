"""The process that Spark forks its Python workers from: it has everything imported, so that a new worker is ready at once."""

from __future__ import annotations

import pyspark.daemon

import potok.engine.job  # noqa: F401 - for its imports: Arrow, numpy and the kernels

if __name__ == "__main__":
    pyspark.daemon.manager()
