from __future__ import annotations

from pathlib import Path

from potok.log.open import open_broker
from potok.snapshots.source_status import GATEWAY, read_source_statuses
from potok.sources.datagrams.udp import Udp
from potok.sources.gateway import Gateway
from potok.sources.overload import Overload
from potok.sources.status_report import StatusReport


def test_the_last_report_of_a_gateway_says_that_it_has_stopped(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    overload = Overload(when_full="drop_newest")
    with Gateway(broker, [Udp(name="metrics", topic="metrics", listen="127.0.0.1:0", overload=overload)]):
        pass
    (found,) = read_source_statuses(broker)
    assert (found.kind, found.name, found.running) == (GATEWAY, "metrics", False)
    assert found.status["counts"]["received"] == 0 and found.process.startswith("process ")


def test_a_log_that_does_not_answer_ends_no_report(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    report = StatusReport(broker, GATEWAY, lambda: {"metrics": {"at": 1}})
    broker.close()
    report.start()
    report.stop()
