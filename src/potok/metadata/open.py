"""Open the metadata store at a URL."""

from __future__ import annotations

from potok.backends.state_url import CASSANDRA, FILE, OBJECTS, REDIS, UnknownStore, Where
from potok.metadata.metadata_store import MetadataStore


def open_metadata(where: str | Where) -> MetadataStore:
    """Open the metadata store on a server or in object storage, for queries whose log does not store metadata itself.

    >>> store = open_metadata("redis://localhost:6379/0")
    """
    location = where if isinstance(where, Where) else Where.of(where)
    if location.kind == FILE:
        raise UnknownStore(str(location))
    location.need_driver()
    if location.kind == OBJECTS:
        from potok.metadata.object_metadata import ObjectMetadata

        return ObjectMetadata(location)
    if location.kind == REDIS:
        from potok.metadata.redis_metadata import RedisMetadata

        return RedisMetadata(location)
    if location.kind == CASSANDRA:
        from potok.metadata.cassandra_metadata import CassandraMetadata

        return CassandraMetadata(location)
    from potok.metadata.postgres_metadata import PostgresMetadata

    return PostgresMetadata(location)
