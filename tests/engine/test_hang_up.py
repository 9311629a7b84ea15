from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from potok.engine.batch_loop import BatchLoop, StopAtBoundary
from potok.engine.hang_up import hush_driver, print_unless_hung_up, show_unless_hung_up
from potok.errors import LogError


@pytest.mark.parametrize(
    ("error", "printed"), [(BrokenPipeError(), False), (ConnectionResetError(), False), (OSError("disk"), True)]
)
def test_only_a_hang_up_is_not_printed(error: OSError, printed: bool, capsys: pytest.CaptureFixture[str]) -> None:
    show_unless_hung_up(type(error), error, None)
    assert ("disk" in capsys.readouterr().err) == printed
    try:
        raise error
    except OSError:
        print_unless_hung_up()
    assert ("disk" in capsys.readouterr().err) == printed


@pytest.mark.parametrize(
    ("error", "printed"), [(EOFError(), False), (BrokenPipeError(), False), (OSError("disk"), True)]
)
def test_the_driver_says_nothing_of_a_jvm_that_is_gone(
    error: Exception, printed: bool, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    from pyspark.accumulators import AccumulatorUnixServer

    hush_driver()
    server = AccumulatorUnixServer.__new__(AccumulatorUnixServer)
    try:
        raise error
    except (OSError, EOFError):
        server.handle_error(None, ("", 0))
        assert ("disk" in capsys.readouterr().err) == printed
        for name in ("", "py4j.clientserver"):
            log = logging.getLogger(name)
            log.handle(log.makeRecord(name, logging.ERROR, "/lib/py4j/clientserver.py", 1, name, (), sys.exc_info()))
            log.exception("of somebody else")
    assert [record.getMessage() for record in caplog.records if record.getMessage() != "of somebody else"] == (
        ["", "py4j.clientserver"] if printed else []
    )
    assert caplog.text.count("of somebody else") == 2


def _log(error: Exception) -> None:
    """As Py4J does with what a function of Python's has raised that the JVM called."""
    log = logging.getLogger("py4j.clientserver")
    told = (type(error), error, error.__traceback__)
    log.handle(log.makeRecord(log.name, logging.ERROR, "/lib/py4j/clientserver.py", 1, str(error), (), told))


def test_what_ends_a_loop_over_batches_is_told_by_who_waits_for_it_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: int) -> None:
        raise LogError("no space left", hint="")

    hush_driver()
    loop = BatchLoop("orders", tmp_path, work=fail, close=lambda _: None)
    nothing: Any = None
    with pytest.raises(LogError) as failed:
        loop._on_batch(nothing, 0)
    loop._stop_asked.set()
    with pytest.raises(StopAtBoundary) as stopped:
        loop._on_batch(nothing, 1)
    with pytest.raises(LogError) as other:
        fail(2)
    for raised in (failed, stopped):
        _log(raised.value)
    assert caplog.text == ""
    _log(other.value)
    assert "no space left" in caplog.text
