"""The progress of a query, written in the same transaction as each batch, for monitoring."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from potok.clock import now_ms
from potok.operators.core.task_report import Report


@dataclass(slots=True)
class Totals:
    """Counts since the query was created."""

    records_in: int = 0
    records_out: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)
    steps_in: Counter[str] = field(default_factory=Counter)
    steps_out: Counter[str] = field(default_factory=Counter)
    steps_late: Counter[str] = field(default_factory=Counter)
    jumps: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    """Requests to object storage, and bytes in both directions."""

    @classmethod
    def of_progress(cls, data: bytes | None) -> Totals:
        if data is None:
            return cls()
        found = json.loads(data)
        steps = found["steps"]
        return cls(
            found["total_in"],
            found["total_out"],
            Counter(found["dead_letters_by_reason"]),
            Counter({step: counts["in"] for step, counts in steps.items()}),
            Counter({step: counts["out"] for step, counts in steps.items()}),
            Counter({step: counts.get("late", 0) for step, counts in steps.items()}),
            Counter(found.get("stream_time_jumps", {})),
            Counter(found.get("failures", {})),
            Counter(found.get("object_requests", {})),
        )

    def __deepcopy__(self, _: object) -> Totals:
        """Copy field by field, ten times faster than the generic `deepcopy`: it runs before every batch."""
        return Totals(
            self.records_in,
            self.records_out,
            self.dead_letters.copy(),
            self.steps_in.copy(),
            self.steps_out.copy(),
            self.steps_late.copy(),
            self.jumps.copy(),
            self.failures.copy(),
            self.requests.copy(),
        )

    def add(self, report: Report, records: int) -> None:
        self.records_in += records
        self.records_out += report.written
        self.dead_letters += report.reasons
        self.steps_in += report.records_in
        self.steps_out += report.records_out
        self.steps_late += report.late
        self.jumps += report.jumps
        self.failures += report.failures
        self.requests += Counter(report.requests.counts())


@dataclass(slots=True)
class QueryMetrics:
    """The state of a running query between two batches."""

    query: str
    started_at_ms: int = field(default_factory=now_ms)
    state: str = "starting"
    error: str = ""
    batch: int = 0
    batch_ms: int = 0
    records_in: int = 0
    records_out: int = 0
    lag: int = 0
    state_bytes: dict[int, int] = field(default_factory=dict)
    state_keys: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, dict[int, int]] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    committed: bytes = field(default=b"", repr=False)
    """The progress as of the last commit; everything else may be that of an attempt."""

    def __post_init__(self) -> None:
        self.committed = self.to_bytes()

    def begin(self, ago_ms: int = 0) -> None:
        """Note that the query has been reading its topics for `ago_ms`. Its uptime excludes the start of Spark."""
        if self.state == "starting":
            self.state, self.started_at_ms = "running", now_ms() - ago_ms

    def to_bytes(self) -> bytes:
        totals = self.totals
        names = sorted({*totals.steps_in, *totals.steps_out})
        data = {
            "query": self.query,
            "state": self.state,
            "error": self.error,
            "started_at_ms": self.started_at_ms,
            "committed_at_ms": now_ms(),
            "batch": self.batch,
            "batch_ms": self.batch_ms,
            "records_in": self.records_in,
            "records_out": self.records_out,
            "lag": self.lag,
            "total_in": totals.records_in,
            "total_out": totals.records_out,
            "dead_letters": sum(totals.dead_letters.values()),
            "dead_letters_by_reason": dict(totals.dead_letters),
            "state_bytes": sum(self.state_bytes.values()),
            "state_keys": self.state_keys,
            "offsets": self.offsets,
            "watermarks": self.watermarks,
            "stream_time_jumps": dict(totals.jumps),
            "failures": dict(totals.failures),
            "object_requests": dict(totals.requests),
            "steps": {
                name: {
                    "in": totals.steps_in[name],
                    "out": totals.steps_out[name],
                    "late": totals.steps_late[name],
                }
                for name in names
            },
        }
        return json.dumps(data).encode()
