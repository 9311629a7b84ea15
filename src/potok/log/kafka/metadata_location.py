"""Where the metadata of a Kafka log is stored, and the protected offsets in it.

Kafka cannot store metadata itself: a server does, or the embedded log in a directory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.metadata.metadata_store import MetadataStore
from potok.metadata.open import open_metadata

_PROTECTED = "protected/"


def metadata_store(url: str | None, directory: Path) -> MetadataStore:
    """Open the metadata store on a server or, without a URL, in a directory, which this creates."""
    return open_metadata(url) if url else EmbeddedBroker.shared(directory)


def has_metadata(url: str | None, directory: Path) -> bool:
    """Return whether there may be metadata, without creating a store."""
    return url is not None or (directory / "log" / "meta").exists()


def set_protected(store: MetadataStore, owner: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Replace the offsets from which on `owner` needs the records."""
    positions = [[topic, partition, offset] for (topic, partition), offset in sorted(offsets.items())]
    store.set_metadata({_PROTECTED + owner: json.dumps(positions).encode() if positions else None})


def protected(store: MetadataStore) -> dict[tuple[str, int], int]:
    """Return the lowest protected offset of each partition."""
    least: dict[tuple[str, int], int] = {}
    for data in store.list_metadata(_PROTECTED).values():
        for topic, partition, offset in json.loads(data):
            least[topic, partition] = min(offset, least.get((topic, partition), offset))
    return least
