"""Collect the lag and the rebalances of the consumer groups of an embedded log. Kafka's have exporters of their own."""

from __future__ import annotations

from dataclasses import dataclass

from potok.log.broker import Broker
from potok.monitoring import families as f
from potok.monitoring.scrape import Scrape

MOST_GROUPS = 200


@dataclass(frozen=True, slots=True)
class ConsumerGroupCollector:
    """Collects consumer groups of a log, the first ones by name if there are very many."""

    broker: Broker

    def __call__(self, scrape: Scrape) -> None:
        if not self.broker.commits_together:
            return
        groups = [self.broker.describe_group(name) for name in sorted(self.broker.groups())[:MOST_GROUPS]]
        topics = {topic for group in groups for topic in group.committed}
        ends = self.broker.end_offsets_of(sorted(topics)) if topics else {}
        for group in groups:
            scrape.add(f.REBALANCES, group.rebalances, group.group)
            for topic, offsets in group.committed.items():
                for partition, offset in offsets.items():
                    lag = max(0, ends[topic].get(partition, 0) - offset)
                    scrape.add(f.GROUP_LAG, lag, group.group, topic, str(partition))
