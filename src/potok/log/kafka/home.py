"""Which records of Kafka somebody still needs, noted in a metadata store: Kafka has no place for it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from potok.connectors.books import MetadataStore

_PROTECTED = "protected/"


def set_protected(store: MetadataStore, owner: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Replace the offsets from which on `owner` needs the records."""
    places = [[topic, partition, offset] for (topic, partition), offset in sorted(offsets.items())]
    store.set_marks({_PROTECTED + owner: json.dumps(places).encode() if places else None})


def protected(store: MetadataStore) -> dict[tuple[str, int], int]:
    """The least offset of each partition that somebody needs."""
    least: dict[tuple[str, int], int] = {}
    for data in store.marks(_PROTECTED).values():
        for topic, partition, offset in json.loads(data):
            least[topic, partition] = min(offset, least.get((topic, partition), offset))
    return least
