"""DataFrames: reading a table of a million rows from PySpark."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import potok
from benchmarks.bench import Bench, Row
from benchmarks.measure import wait_for_quiet
from potok import StreamsBuilder
from potok.log.open import open_broker

ROWS, RATE = 1_000_000, 500_000.0
CHUNK = 100_000
LIMIT_S = 300.0

_FILL = "import sys; from benchmarks.dataframes import fill; fill(sys.argv[1])"
_READ = """
import json, sys, time
from pyspark.sql import SparkSession, functions as F
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
times = []
for _ in range(int(sys.argv[2]) + 1):
    began = time.perf_counter()
    frame = session.read.format("potok").option("broker", f"file:{sys.argv[1]}").option("table", "balances").load()
    found = frame.agg(F.count("*"), F.sum("amount"), F.max("name")).collect()[0]
    times.append(time.perf_counter() - began)
    assert found[0] == int(sys.argv[3]), found
print(json.dumps(times[1:]))
"""


def read_table(bench: Bench) -> Row:
    """Rows of all columns for each second of a query in a plain session with two cores, after one that warms up."""
    directory = bench.made("balances", lambda path: print(_run(_FILL, str(path))))
    wait_for_quiet()
    times = json.loads(_run(_READ, directory, str(bench.repeat), str(ROWS)).splitlines()[-1])
    tries = [ROWS / seconds for seconds in times]
    what, ratios = "spark.read of a table of 1 M rows", [rate / RATE for rate in tries]
    return Row(what, statistics.median(tries), RATE, "rows/s", 1.0, smaller_is_better=False, tries=ratios)


def fill(directory: str) -> None:
    """Run a query whose table has a million rows."""
    broker = open_broker(Path(directory))
    broker.create_topic("balances", 2)
    for first in range(0, ROWS, CHUNK):
        numbers = pa.array(np.arange(first, first + CHUNK))
        text = pc.cast(numbers, pa.string())
        values = pc.binary_join_element_wise('{"name":"user ', text, '","amount":', text, ".5}", "")
        columns = {"key": text.cast(pa.binary()), "value": values.cast(pa.binary()), "timestamp": numbers}
        broker.append("balances", pa.RecordBatch.from_pydict(columns))
    builder = StreamsBuilder("bank")
    builder.table("balances", value="name string, amount double")
    potok.run(builder, broker=directory, until_end=True)


def _run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    # A plain session takes the Python of its workers from the environment.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, env=environment)
    return done.stdout
