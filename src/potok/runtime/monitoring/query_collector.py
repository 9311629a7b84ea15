"""Collect the metrics of queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from potok.clock import now_ms
from potok.errors import LogError
from potok.log.broker import Broker
from potok.monitoring import families as f
from potok.monitoring.scrape import Scrape
from potok.retry_policy import brief_calls
from potok.runtime.monitoring.lag_times import LagTimes
from potok.runtime.monitoring.readings import Reading, Readings
from potok.snapshots.progress import Progress, read_description

Ends = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a query in one topic; `seconds` is None while the age of its oldest unread record is unknown."""

    records: int
    seconds: float | None


@dataclass(slots=True)
class QueryCollector:
    """Collects what running queries have committed, and how far they are behind the ends of their topics.

    >>> registry.add(QueryCollector(broker, lambda: group_readings(group)))
    """

    broker: Broker
    readings: Readings
    lag_times: LagTimes = field(init=False)
    _feeds: dict[str, tuple[int, dict[str, set[str]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lag_times = LagTimes(self.broker)

    def __call__(self, scrape: Scrape) -> None:
        readings = list(self.readings())
        lags = self.lags(readings, scrape)
        for reading in readings:
            _add_state(scrape, reading)
            if reading.progress is not None:
                _add_progress(scrape, reading.progress)
                scrape.add(f.BATCHES, reading.batch or None, reading.query)
                self._add_freshness(scrape, reading.progress, lags[reading.query])
            for topic, lag in lags[reading.query].items():
                scrape.add(f.SOURCE_LAG, lag.records, reading.query, topic)
                scrape.add(f.SOURCE_LAG_SECONDS, lag.seconds, reading.query, topic)

    def lags(self, readings: Iterable[Reading], scrape: Scrape | None = None) -> dict[str, dict[str, Lag]]:
        """Return the lag of each query by topic; add that of each partition to a scrape."""
        readings, now = list(readings), now_ms()
        ends = self._ends({topic for reading in readings for topic in reading.offsets or ()})
        for topic, parts in ends.items():
            for partition, end in parts.items():
                self.lag_times.note(topic, partition, end, now)
        found: dict[str, dict[str, Lag]] = {}
        for reading in readings:
            offsets = {topic: parts for topic, parts in (reading.offsets or {}).items() if topic in ends}
            found[reading.query] = {
                topic: self._lag(reading.query, topic, parts, ends[topic], now, scrape)
                for topic, parts in offsets.items()
            }
        self.lag_times.retain({(topic, partition) for topic, parts in ends.items() for partition in parts})
        self.lag_times.read_wanted()
        return found

    def _lag(
        self,
        query: str,
        topic: str,
        offsets: Mapping[int, int],
        ends: Mapping[int, int],
        now: int,
        scrape: Scrape | None,
    ) -> Lag:
        records, oldest_ms = 0, 0
        is_known = True
        for partition, end in ends.items():
            offset = offsets.get(partition, 0)
            age_ms = self.lag_times.lag_ms(topic, partition, offset, end, now)
            records += max(0, end - offset)
            is_known &= age_ms is not None
            oldest_ms = max(oldest_ms, age_ms or 0)
            if scrape is not None:
                labels = (query, topic, str(partition))
                scrape.add(f.GROUP_LAG, max(0, end - offset), *labels)
                scrape.add(f.GROUP_LAG_SECONDS, None if age_ms is None else age_ms / 1000, *labels)
        return Lag(records, oldest_ms / 1000 if is_known else None)

    def _ends(self, topics: set[str]) -> Ends:
        """Return the ends of topics; none if the log does not answer, so that their lag is unknown, not 0."""
        found: dict[str, Mapping[int, int]] = {}
        if topics:
            with brief_calls():
                try:
                    return self.broker.end_offsets_of(sorted(topics))
                except LogError as error:
                    if error.passing:
                        return {}
                # A topic was deleted.
                for topic in sorted(topics):
                    with suppress(LogError):
                        found |= self.broker.end_offsets_of([topic])
        return found

    def _add_freshness(self, scrape: Scrape, progress: Progress, lags: Mapping[str, Lag]) -> None:
        for table, topics in self._feeds_of(progress).items():
            ages = [lags[topic].seconds for topic in topics if topic in lags]
            known = [age for age in ages if age is not None]
            if ages and len(known) == len(ages):
                scrape.add(f.FRESHNESS, max(known), progress.query, table)

    def _feeds_of(self, progress: Progress) -> dict[str, set[str]]:
        """Return the topics that feed each table; they are read again when the query was started again."""
        known = self._feeds.get(progress.query)
        if known is None or known[0] != progress.started_at_ms:
            description = read_description(self.broker, progress.query) or {"steps": [], "tables": []}
            topics: dict[str, set[str]] = {}
            for step in description["steps"]:
                fed = set[str]().union(*(topics.get(upstream, set()) for upstream in step["upstreams"]))
                topics[step["name"]] = {step["topic"]} if step["role"] == "source" else fed
            feeds = {table: topics.get(table, set()) for table in description["tables"]}
            known = self._feeds[progress.query] = (progress.started_at_ms, feeds)
        return known[1]


def _add_state(scrape: Scrape, reading: Reading) -> None:
    for state in f.STATES:
        scrape.add(f.QUERY_STATE, int(state == reading.state), reading.query, state)
    figures = reading.figures
    if figures is None:
        return
    for phase, histogram in figures.durations.items():
        scrape.add(f.BATCH_DURATION, histogram.read(), reading.query, phase)
    for cause in ("log", "state", "sink", "query"):
        scrape.add(f.WAITS, figures.waits[cause], reading.query, cause)
    for cause in ("log", "state", "sink", "query", "group"):
        scrape.add(f.RESTARTS, figures.restarts[cause], reading.query, cause)
    scrape.add(f.SINK_RETRIES, figures.waits["sink"], reading.query)


def _add_progress(scrape: Scrape, progress: Progress) -> None:
    query, now = progress.query, now_ms()
    scrape.add(f.LAST_COMMIT, progress.committed_at_ms / 1000 if progress.batch else None, query)
    scrape.add(f.RECORDS, progress.total_in, query, "in")
    scrape.add(f.RECORDS, progress.total_out, query, "out")
    for step, counts in progress.steps.items():
        scrape.add(f.STEP_RECORDS, counts["in"], query, step, "in")
        scrape.add(f.STEP_RECORDS, counts["out"], query, step, "out")
        if counts.get("late") or step in progress.watermarks:
            scrape.add(f.LATE_RECORDS, counts.get("late", 0), query, step)
    for reason in ("decode", "timestamp", "error", "late", "no key", "encode", "refused"):
        count = progress.dead_letters_by_reason.get(reason, 0)
        scrape.add(f.DEAD_LETTERS, count, query, reason.replace(" ", "_"))
    scrape.add(f.EXPRESSION_FAILURES, sum(progress.failures.values()), query)
    for topic, count in progress.stream_time_jumps.items():
        scrape.add(f.TIME_JUMPS, count, query, topic)
    for step, watermark in progress.watermarks.items():
        scrape.add(f.WATERMARK_LAG, max(0, now - watermark) / 1000, query, step)
    scrape.add(f.STATE_BYTES, progress.state_bytes, query)
    for table, keys in progress.state_keys.items():
        scrape.add(f.STATE_KEYS, keys, query, table)
