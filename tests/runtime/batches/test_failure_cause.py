"""What Spark says when a batch fails, in one line."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JNetworkError

from potok.runtime.batches.failure_cause import JVM_GONE, WORKER_DIED, QueryFailed, cause_of

DIED = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent \
failure: Lost task 0.3 (TID 3): org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handleException(PythonRunner.scala:640)
\tat org.apache.spark.util.SparkErrorUtils.tryWithSafeFinally$(SparkErrorUtils.scala:83)
Caused by: java.io.EOFException
\t... 22 more

Driver stacktrace:
Caused by: java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:381)
\t... 22 more
"""

RAISED = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "job.py", line 8, in bad
    raise OSError("disk gone")
OSError: disk gone

\tat org.apache.spark.util.SparkErrorUtils.tryWithSafeFinally(SparkErrorUtils.scala:83)
"""

NO_ROOM = """Job aborted due to stage failure
java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
Caused by: java.lang.Exception: something deeper
"""

PLAN = """[NOT_EMPTY] The place should be empty.
Please empty it.
=== Streaming Query ===
Plan:
+- ~Relation potok
"""


JAVA = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: {}
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
"""


@pytest.mark.parametrize(
    ("reported", "cause"),
    [
        (DIED, WORKER_DIED),
        (RAISED, "OSError: disk gone"),
        (NO_ROOM, "the disk that holds Spark's temporary files is full"),
        (JAVA.format("java.lang.OutOfMemoryError: Java heap space"), "Spark's JVM ran out of memory"),
        (
            JAVA.format(
                "org.apache.spark.SparkException: Job aborted due to stage failure: Total size of serialized results "
                "of 4 tasks (1100.0 MiB) is bigger than spark.driver.maxResultSize (1024.0 MiB)"
            ),
            "the results of the batch exceed spark.driver.maxResultSize",
        ),
        (
            JAVA.format("org.apache.spark.SparkException: Job 3 cancelled because SparkContext was shut down"),
            "the Spark context was stopped while the batch was running",
        ),
        (
            JAVA.format("java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."),
            "the Spark context was stopped while the batch was running",
        ),
        (JAVA.format("org.apache.spark.SparkException: Task not serializable"), "Task not serializable"),
        (JAVA.format("java.lang.ClassCastException: no"), "java.lang.ClassCastException: no"),
        (PLAN, "[NOT_EMPTY] The place should be empty."),
        ("potok.errors.LogError: the log is away", "potok.errors.LogError: the log is away"),
        ("", "RuntimeError"),
    ],
)
def test_the_cause_is_the_line_that_says_what_happened(reported: str, cause: str) -> None:
    assert cause_of(RuntimeError(reported)) == cause


def refused_in(module: str) -> Exception:
    try:
        exec("raise ConnectionRefusedError('nobody listens')", {"__name__": module})
    except ConnectionRefusedError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize("gone", [Py4JNetworkError("Answer from Java side is empty"), refused_in("py4j.clientserver")])
def test_a_lost_jvm_is_reported_whichever_call_noticed_it(gone: Exception) -> None:
    assert cause_of(gone) == JVM_GONE
    wrapped = RuntimeError("An error occurred while calling collectAndServe")
    wrapped.__context__ = gone
    assert cause_of(wrapped) == JVM_GONE


def test_a_connection_of_another_process_is_not_the_jvm() -> None:
    assert cause_of(refused_in("http.client")) == "nobody listens"


def test_a_cause_is_never_long() -> None:
    assert len(cause_of(RuntimeError("x" * 10_000))) == 500


IN_POTOK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/site-packages/pyspark/worker.py", line 8, in main
    process()
  File "/x/site-packages/potok/operators/cells/sorted_runs.py", line 236, in pages
    return np.concatenate(hashes)
ValueError: need at least one array to concatenate
"""

IN_PROGRAM = """Traceback (most recent call last):
  File "/x/site-packages/potok/operators/processors/process.py", line 8, in init
    self.user()
  File "orders.py", line 3, in user
    raise KeyError("x")
KeyError: 'x'
"""


def test_unexpected_exceptions_are_reported_as_internal_errors_with_their_location() -> None:
    reported = (
        "internal error in Potok (potok/operators/cells/sorted_runs.py, line 236): "
        "ValueError: need at least one array to concatenate"
    )
    assert cause_of(RuntimeError(IN_POTOK)) == reported
    assert "report this message" in str(QueryFailed("q", reported))


@pytest.mark.parametrize(
    "raised", ["OSError: [Errno 24] Too many open files: 'x'", "MemoryError", "PermissionError: no"]
)
def test_what_the_machine_refuses_is_not_an_internal_error(raised: str) -> None:
    reported = IN_POTOK.replace("ValueError: need at least one array to concatenate", raised)
    assert cause_of(RuntimeError(reported)) == raised


def test_what_the_program_raised_is_its_own() -> None:
    assert cause_of(RuntimeError(IN_PROGRAM)) == "KeyError: 'x'"
    assert "report this message" not in str(QueryFailed("q", "KeyError: 'x'"))


@pytest.mark.parametrize(
    ("java", "setting"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", "driver_memory"),
        ("java.io.IOException: No space left on device", "local.dir"),
    ],
)
def test_the_error_of_a_full_machine_names_the_setting_that_helps(java: str, setting: str) -> None:
    assert setting in QueryFailed("q", cause_of(RuntimeError(JAVA.format(java)))).hint
