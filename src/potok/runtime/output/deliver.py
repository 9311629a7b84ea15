"""Output outside the commit: delivered before it, so that a crash repeats it, or after it, so that a crash loses it.

A sink with the guarantee exactly_once gets a batch before the commit, and recognises it when it is repeated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from potok.log.broker import Broker, Staged
from potok.log.failpoint import failpoint
from potok.operators.core.batch_spec import BatchSpec
from potok.operators.core.chunk import concat, in_order
from potok.operators.core.dead_letters import DeadLetters, Reason, add_reason_counts
from potok.operators.core.task_report import Report
from potok.operators.sinks.external_sink import rows_of
from potok.operators.sinks.staged_output import Outgoing
from potok.records.position import Position
from potok.runtime.batches.original import originals
from potok.runtime.output.dead_letters import stage_dead_letters
from potok.runtime.webhooks.dispatcher import Dispatcher
from potok.runtime.webhooks.writer import WebhookWriter
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch, Opening, PartWriter, SinkWriter, Types
from potok.sinks.spark_access import SparkAccess
from potok.sinks.webhooks.webhooks import WebhookTarget
from potok.state.entry import Entry
from potok.topology.execution_plan import Plan
from potok.topology.nodes import Deliver

Writer = SinkWriter | PartWriter | WebhookWriter


@dataclass(slots=True)
class Deliveries:
    """The open sinks of a query, and the topics that are not part of its commit."""

    broker: Broker
    dead_letter_topic: str
    written: Position = field(default_factory=Position)
    """The position after all output to topics outside the commit."""
    _sinks: list[tuple[Deliver, Writer]] = field(default_factory=list)
    _dispatcher: Dispatcher | None = None

    @classmethod
    def opened(cls, plan: Plan, broker: Broker, entry: Entry, spark: SparkAccess | None) -> Deliveries:
        """Open all sinks, so that one that is unreachable or misconfigured is found before there are records."""
        made = cls(broker, plan.topology.dead_letter_topic)
        webhooks: dict[str, WebhookTarget] = {}
        try:
            for node in plan.topology.of_type(Deliver):
                if isinstance(node.target, WebhookTarget):
                    webhooks[node.name] = node.target
                    made._sinks.append((node, WebhookWriter(broker, plan.topology.name, node.name)))
                    continue
                step = plan.inferred[node]
                types = Types(step.key, step.value)
                query, guarantee = plan.topology.name, node.guarantee
                opening = Opening(query, node.name, guarantee, types, entry.epoch, entry.batch, spark)
                made._sinks.append((node, node.target.open(opening)))
            if webhooks:
                made._dispatcher = Dispatcher(broker, plan.topology.name, entry.epoch, webhooks)
        except BaseException:
            made.close()
            raise
        return made

    def before_commit(self, spec: BatchSpec, report: Report) -> None:
        """Deliver output that precedes the commit. Records that a sink refuses join the dead letters of the batch."""
        if not report.outgoing and not report.unfenced:
            return
        failpoint("deliver.before")
        dead_letters = self._deliver(spec, report, early=True)
        if len(dead_letters):
            report.staged += self._staged(dead_letters, spec)
            report.reasons += dead_letters.reasons
            add_reason_counts(report.reason_counts, dead_letters.reason_counts)
        self._append(report, Guarantee.AT_LEAST_ONCE)
        failpoint("deliver.done")

    def after_commit(self, spec: BatchSpec, report: Report) -> Counter[str]:
        """Deliver output that must never be repeated; return how many records were refused."""
        if not report.outgoing and not report.unfenced:
            return Counter()
        self._append(report, Guarantee.AT_MOST_ONCE)
        dead_letters = self._deliver(spec, report, early=False)
        if len(dead_letters):
            self.broker.append_staged(self._staged(dead_letters, spec))
            add_reason_counts(report.reason_counts, dead_letters.reason_counts)
        failpoint("deliver.after")
        return dead_letters.reasons

    def _append(self, report: Report, guarantee: Guarantee) -> None:
        staged = report.unfenced.get(guarantee)
        if staged:
            self.written |= self.broker.append_staged(staged)

    def _deliver(self, spec: BatchSpec, report: Report, *, early: bool) -> DeadLetters:
        dead_letters = DeadLetters(spec.input_partitions, partial(originals, self.broker), spec.processing_time_ms)
        by_step: dict[str, list[Outgoing]] = defaultdict(list)
        for outgoing in report.outgoing:
            by_step[outgoing.step].append(outgoing)
        batch = Batch(*spec.fence.attempt)
        for node, sink_writer in self._sinks:
            if by_step[node.name] and node.guarantee.before_commit == early:
                report.staged += self._hand_over(node, sink_writer, batch, by_step[node.name], dead_letters, spec)
        return dead_letters

    def _hand_over(
        self,
        node: Deliver,
        sink_writer: Writer,
        batch: Batch,
        outgoing: Sequence[Outgoing],
        dead_letters: DeadLetters,
        spec: BatchSpec,
    ) -> list[Staged]:
        """Give one sink the records of a batch, in an order that does not depend on the scheduling of tasks.

        Return the records of topics that carry the output of this sink, for the commit.
        """
        staged: list[Staged] = []
        ordered = sorted(outgoing, key=attrgetter("task"))
        if isinstance(sink_writer, PartWriter):
            sink_writer.accept(batch, [found.part for found in ordered if found.part is not None])
            return staged
        chunk = in_order(concat([found.chunk() for found in ordered]))
        if isinstance(sink_writer, WebhookWriter):
            staged, failures = sink_writer.stage(batch, rows_of(chunk), spec.staging)
        else:
            failures = sink_writer.deliver(batch, rows_of(chunk))
        if failures:
            dead_letters.add(chunk, failures, node.name, Reason.REFUSED)
        return staged

    def _staged(self, dead_letters: DeadLetters, spec: BatchSpec) -> list[Staged]:
        return stage_dead_letters(self.broker, spec.staging, self.dead_letter_topic, dead_letters)

    def close(self) -> None:
        if self._dispatcher is not None:
            self._dispatcher.close()
            self._dispatcher = None
        for _, sink_writer in self._sinks:
            if not isinstance(sink_writer, WebhookWriter):
                sink_writer.close()
        self._sinks = []
