"""Open the metadata store at a URL."""

from __future__ import annotations

from potok.backends.state_url import FILE, REDIS, UnknownStore, Where
from potok.metadata.metadata_store import MetadataStore


def open_metadata(where: str | Where) -> MetadataStore:
    """Open the metadata store on a server, for queries whose log does not store metadata itself.

    >>> store = open_metadata("redis://localhost:6379/0")
    """
    place = where if isinstance(where, Where) else Where.of(where)
    if place.kind == FILE:
        raise UnknownStore(str(place))
    place.need_driver()
    if place.kind == REDIS:
        from potok.metadata.redis_metadata import RedisMetadata

        return RedisMetadata(place)
    from potok.metadata.postgres_metadata import PostgresMetadata

    return PostgresMetadata(place)
