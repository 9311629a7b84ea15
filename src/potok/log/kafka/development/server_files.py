"""The files of a single-node Kafka server: its configuration and its directories."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from potok.permissions import private_directory

HOST = "127.0.0.1"
"""Local only: the server has no access control."""

_LONGEST_COMPLAINT = 300
_EXCEPTION = re.compile(r"(Caused by: )?[\w.$]+(Exception|Error): ")


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """The files in the directory of a server."""

    directory: Path

    @property
    def lock(self) -> Path:
        """Held by the server while it is running."""
        return self.directory / "server.lock"

    @property
    def state(self) -> Path:
        return self.directory / "server.json"

    @property
    def pid(self) -> Path:
        """Written by the server itself before anything else: the process that started it may exit immediately."""
        return self.directory / "server.pid"

    @property
    def log(self) -> Path:
        return self.directory / "server.log"

    @property
    def properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def logging(self) -> Path:
        return self.directory / "log4j.properties"

    @property
    def records(self) -> Path:
        return self.directory / "records"

    @property
    def is_formatted(self) -> bool:
        return (self.records / "meta.properties").exists()

    def write(self, port: int, controller_port: int, advertised_port: int = 0) -> None:
        private_directory(self.directory)
        self.properties.write_text(_properties(self.records, port, controller_port, advertised_port or port))
        self.logging.write_text(_LOGGING)

    def write_state(self, state: Mapping[str, object]) -> None:
        """Write atomically, because another process may be reading."""
        draft = self.state.with_suffix(".draft")
        draft.write_text(json.dumps(state))
        draft.replace(self.state)

    def complaint(self, since: int) -> str:
        """Return the last exception in the log after byte `since`, or its last line."""
        lines = self.log.read_bytes()[since:].decode(errors="replace").splitlines()
        exceptions = [line for line in lines if _EXCEPTION.match(line)]
        last = (exceptions or lines or ["it printed nothing"])[-1]
        return last if len(last) <= _LONGEST_COMPLAINT else last[:_LONGEST_COMPLAINT] + "..."


def _properties(records: Path, port: int, controller_port: int, advertised_port: int) -> str:
    """Broker and controller in one process, without replicas, optimized for fast startup and fast group formation."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{advertised_port}",
        "log.dirs": str(records),
        "num.partitions": "1",
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        # After a crash the server waits until its previous session has timed out.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "auto.create.topics.enable": "false",
        # Records with old timestamps are not old: without this they would be deleted soon after they arrived.
        "log.retention.ms": "-1",
        "log.cleaner.backoff.ms": "1000",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


_LOGGING = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
"""
