"""The clients of one process for one cluster. A forked process creates its own."""

from __future__ import annotations

import threading
import uuid

from potok.log.kafka.admin.group_offsets import GroupOffsets, GroupProgress
from potok.log.kafka.admin.limits import Limits
from potok.log.kafka.admin.offsets import Positions
from potok.log.kafka.admin.topics import Topics
from potok.log.kafka.append import Appender
from potok.log.kafka.clients import Clients
from potok.log.kafka.fences import Fences
from potok.log.kafka.options import KafkaOptions
from potok.log.kafka.read import Readers
from potok.log.kafka.transactions import Transactor, slot_name


class Connections:
    """Connects lazily."""

    def __init__(self, options: KafkaOptions) -> None:
        self.clients = Clients(options)
        self.topics = Topics(self.clients)
        self.limits = Limits(options, self.topics)
        self.positions = Positions(self.clients, self.topics)
        self.groups = GroupOffsets(self.clients, self.topics)
        self.appender = Appender(self.clients)
        self.readers = Readers(self.clients, self.positions)
        self.fences = Fences(self.clients, self.topics, self.positions, self.readers)
        self.progress = GroupProgress(self.groups)
        self._transactors: dict[tuple[str, str, int | None], Transactor] = {}
        self._lock = threading.Lock()

    def transactor(self, query: str, life: str, slot: int | None = None) -> Transactor:
        """Return the producer of a query's output, or of a slot of it, open across its batches. Without a query, one
        for all else.
        """
        with self._lock:
            key = (query, life, slot)
            if key not in self._transactors:
                name = f"potok-{query}" if query else f"potok-process-{uuid.uuid4()}"
                name = name if slot is None else slot_name(name, slot)
                made = Transactor(self.clients, self.positions, self.fences, name, query, life, slot)
                self._transactors[key] = made
            return self._transactors[key]

    def close(self) -> None:
        with self._lock:
            transactors, self._transactors = self._transactors, {}
        for transactor in transactors.values():
            transactor.close()
        self.progress.settle()
        self.groups.close()
        self.appender.close()
        self.readers.close()
        self.clients.close()
