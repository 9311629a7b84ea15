"""Write streams to servers: caches, search indexes, message brokers and metrics."""

from __future__ import annotations

from collections.abc import Mapping

from potok.dsl.sinks.delivering import Delivering, given_up
from potok.duration import Duration, to_ms
from potok.sinks.guarantee import Guarantee, GuaranteeName
from potok.sinks.opensearch.opensearch import OpenSearchTarget
from potok.sinks.redis.redis import RedisFormat, RedisTarget


class MaintainedSinks(Delivering):
    """The methods that maintain a copy by key in another system: of a table, or of the last record of each key."""

    def to_redis(
        self,
        url: str,
        *,
        prefix: str,
        format: RedisFormat = "json",
        ttl: Duration | None = None,
        give_up_after: Duration | None = None,
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        name: str | None = None,
    ) -> None:
        """Maintain a cache in Redis: a value replaces that of its key, and a null value deletes the key.

        >>> counts.to_redis("redis://localhost:6379/0", prefix="counts:")

        Args:
            url: A server that is not a cluster; `rediss://` uses TLS.
            prefix: The key of a record follows it: text unchanged, anything else as JSON.
            format: `json` sets a string; `hash` sets a hash with a string for each field that is not null.
            ttl: How long a key lives after it was last written.
            give_up_after: How long to retry while the server does not answer before the query stops; by default the
                setting `retry_for`.
            guarantee: With `exactly_once`, a fence in the same database keeps an earlier start of the query from
                writing after a later one.
            name: Names the step and its fence.
        """
        ttl_ms = None if ttl is None else to_ms(ttl)
        target = RedisTarget(url, prefix, format, ttl_ms, given_up(give_up_after))
        self._deliver(target, prefix.strip(":") or "all", guarantee, name)

    def to_opensearch(
        self,
        url: str,
        index: str,
        *,
        headers: Mapping[str, str] | None = None,
        bulk_bytes: int = 5_000_000,
        timeout: Duration = "30 seconds",
        give_up_after: Duration | None = None,
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        name: str | None = None,
    ) -> None:
        """Maintain an index in OpenSearch or Elasticsearch: a value replaces the document of its key, a null deletes.

        >>> products.to_opensearch("http://localhost:9200", "products")

        A document that does not fit the mapping becomes a dead letter; items that the server puts off are retried.

        Args:
            url: The server; user and password may be part of it.
            index: Created if it does not exist, with the mapping that the server derives.
            headers: Sent with each request, for example `{"Authorization": "ApiKey ..."}`.
            bulk_bytes: The size of a bulk request.
            timeout: The time limit of a request.
            give_up_after: How long to retry while the server does not answer before the query stops; by default the
                setting `retry_for`.
            guarantee: With `exactly_once`, documents have external versions, and the index `potok-fences` has a
                document for this step.
            name: Names the step and its fence.
        """
        given = tuple((headers or {}).items())
        target = OpenSearchTarget(url, index, given, bulk_bytes, to_ms(timeout), given_up(give_up_after))
        self._deliver(target, index, guarantee, name)
