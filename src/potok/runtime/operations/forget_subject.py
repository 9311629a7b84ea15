"""Forget a subject: delete their key, then notify the topics that contain their events."""

from __future__ import annotations

import pyarrow as pa

from potok.events.personal.forgotten import forgotten_row
from potok.events.personal.key_store import Announcement, KeyStore
from potok.log.broker import LOG_SCHEMA, Broker
from potok.log.errors import MetadataConflict
from potok.log.failpoint import failpoint
from potok.log.partitioner import split

_PREFIX = "personal/forgotten/"


def forget_subject(broker: Broker, keys: KeyStore, subject: str) -> list[str]:
    """Delete the key of a subject and append `SubjectForgotten` to the topics with their events; return the topics.

    If the process dies in between, the personal data is gone and the events are missing: they are appended by the next
    call, for whichever subject. On the embedded log, each is appended once.
    """
    announced = [announcement.topic for announcement in keys.forget(subject)]
    failpoint("key-deleted")
    announce(broker, keys)
    return announced


def announce(broker: Broker, keys: KeyStore) -> list[Announcement]:
    """Append the events that are due, and return them."""
    found = keys.unannounced()
    for announcement in found:
        metadata_key = f"{_PREFIX}{announcement.topic}/{announcement.id.hex()}"
        if broker.has_topic(announcement.topic):
            parts = split(_batch(announcement), broker.partitions(announcement.topic))
            staged = [broker.stage(None, announcement.topic, partition, batch) for partition, batch in parts]
            try:
                broker.publish(staged, {metadata_key: b""}, {metadata_key: None})
            except MetadataConflict:
                # It is in the topic: the process died before it noted so in the key store.
                pass
        failpoint("subject-announced")
        keys.announced(announcement)
        broker.set_metadata({metadata_key: None})
    return found


def _batch(announcement: Announcement) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([forgotten_row(announcement)], LOG_SCHEMA)
