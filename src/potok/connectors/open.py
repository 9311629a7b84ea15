"""Open the metadata store at a URL."""

from __future__ import annotations

from potok.connectors.books import MetadataStore
from potok.connectors.where import FILE, REDIS, UnknownStore, Where


def open_books(where: str | Where) -> MetadataStore:
    """The metadata store on a server, for queries whose log has none of its own.

    >>> store = open_books("redis://localhost:6379/0")
    """
    place = where if isinstance(where, Where) else Where.of(where)
    if place.kind == FILE:
        raise UnknownStore(str(place))
    place.need_driver()
    if place.kind == REDIS:
        from potok.connectors.redis.redis_books import RedisBooks

        return RedisBooks(place)
    from potok.connectors.postgres.postgres_books import PostgresBooks

    return PostgresBooks(place)
