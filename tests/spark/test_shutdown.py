from __future__ import annotations

import logging
import sys

import pytest

from potok.spark.shutdown import hush_driver, print_unless_hung_up


@pytest.mark.parametrize(
    ("error", "printed"), [(BrokenPipeError(), False), (ConnectionResetError(), False), (OSError("disk"), True)]
)
def test_only_a_hang_up_is_not_printed(error: OSError, printed: bool, capsys: pytest.CaptureFixture[str]) -> None:
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
