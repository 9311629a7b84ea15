"""Records for an external sink: encoded, sorted, and staged until the batch commits."""

from __future__ import annotations

from dataclasses import replace

from potok.operators.core.batch_spec import BatchSpec
from potok.operators.core.chunk import Chunk, gathered
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.core.task_report import Report
from potok.operators.sinks.staged_output import Outgoing, stage_chunk
from potok.sinks.errors import DeliveryFailed, may_pass
from potok.sinks.sink_spec import Part, PartTarget, Rows, Types
from potok.topology.nodes import Deliver


class ExternalSinkOperator(Operator):
    """Stage the records of one task for one external sink."""

    def __init__(self, node: Deliver, task: Task, types: Types, number: int, spec: BatchSpec, report: Report) -> None:
        super().__init__(node.name, task)
        self._node, self._types, self._number = node, types, number
        self._spec, self._report = spec, report
        self._chunks: list[Chunk] = []

    def process(self, chunk: Chunk) -> None:
        found = self._node.target.prepare(rows_of(chunk), self._types)
        ready = replace(
            chunk,
            key=found.key,
            value=found.value,
            before=None,
            raw_key=None,
            raw_value=None,
            intact=False,
            home=None,
        )
        if found.failures:
            self.task.dead_letters.add(chunk, found.failures, self.name, Reason.REFUSED)
            ready = ready.where(all_but(found.failures, len(chunk)))
        if len(ready):
            self.task.records_out[self.name] += len(ready)
            self._chunks.append(ready)

    def finish(self) -> None:
        if not self._chunks:
            return
        chunk = gathered(self._chunks)
        self._chunks = []
        self._report.written += len(chunk)
        target = self._node.target
        if isinstance(target, PartTarget):
            outgoing = Outgoing(self.name, self._number, len(chunk), part=self._write(target, chunk))
        else:
            outgoing = stage_chunk(self._spec.staging, self.name, self._number, chunk)
        self._report.outgoing.append(outgoing)

    def _write(self, target: PartTarget, chunk: Chunk) -> Part:
        try:
            return target.write(rows_of(chunk), self._spec.query, self.name)
        except OSError as error:
            batch = self._spec.fence.attempt.batch
            raise DeliveryFailed(self.name, target.label, batch, str(error), passing=may_pass(error)) from error


def rows_of(chunk: Chunk) -> Rows:
    return Rows(chunk.key, chunk.value, chunk.timestamp, chunk.headers)
