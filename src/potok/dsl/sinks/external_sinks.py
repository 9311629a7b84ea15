"""Write streams to sinks outside the log: files, PostgreSQL, HTTP, and user functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from potok.dsl.graph_builder import calling_location
from potok.dsl.sinks.delivering import Delivering
from potok.duration import Duration, to_ms
from potok.errors import TopologyError
from potok.expressions.function import Function, WrongArity
from potok.machine import usable_path
from potok.sinks.callable import CallableTarget
from potok.sinks.file_formats import COMPRESSIONS
from potok.sinks.files import FilesTarget
from potok.sinks.guarantee import Guarantee, GuaranteeName
from potok.sinks.http.http import HttpTarget
from potok.sinks.postgres.postgres import PostgresTarget
from potok.sinks.urls import host_of
from potok.sinks.webhooks.retry_schedule import RetrySchedule
from potok.sinks.webhooks.webhooks import WebhookEndpoint, WebhookTarget

FileFormat = Literal["parquet", "json"]
Compression = Literal["zstd", "snappy", "gzip", "none"]


class ExternalSinks(Delivering):
    """The methods that deliver records outside the log. Each ends a stream."""

    def to_files(
        self,
        path: str | Path,
        format: FileFormat = "parquet",
        *,
        compression: Compression | None = None,
        with_key: bool = False,
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        name: str | None = None,
    ) -> None:
        """Write files to a directory, one or more per batch.

        >>> orders.to_files("lake/orders")
        >>> counts.to_stream().to_files("lake/counts", format="json", with_key=True)

        Args:
            path: The directory. All workers must be able to reach it under this path.
            format: `parquet` needs typed values, whose fields become columns; `json` writes one line per record.
            compression: `zstd`, `snappy`, `gzip` or `none` for Parquet; `none`, `gzip` or `zstd` for JSON.
            with_key: Write key, timestamp and value instead of the value alone; required for null values.
            guarantee: With `exactly_once`, no other sink may write to the directory.
            name: Names the step; the directory is marked with it.
        """
        chosen = compression or COMPRESSIONS.get(format, ("",))[0]
        target = FilesTarget(str(usable_path(path, "the directory")), format, chosen, with_key)
        self._deliver(target, Path(target.path).name, guarantee, name)

    def to_postgres(
        self,
        url: str,
        table: str,
        *,
        key: str | Sequence[str] = (),
        columns: Mapping[str, str] | None = None,
        give_up_after: Duration | None = None,
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        name: str | None = None,
    ) -> None:
        """Write to a PostgreSQL table: a record replaces the row of its key, and a null value deletes it.

        >>> counts.to_stream().to_postgres("postgresql://app@localhost/shop", "order_counts")
        >>> orders.to_postgres(url, "orders", key="order_id")

        Args:
            url: A libpq connection URL; the password may be in `PGPASSWORD` or `~/.pgpass` instead.
            table: Created if it does not exist; `"shop.orders"` includes a schema.
            key: The fields of the value that identify a row; by default the key of the record.
            columns: Column names by field, where they differ. A key or a value without fields is in the column `key` or
                `value`.
            give_up_after: How long to retry while the server does not answer before the query stops; by default the
                setting `retry_for`.
            guarantee: With `exactly_once`, the table `potok_fences` in the same database holds the last batch.
            name: Names the step and its fence.
        """
        keys = (key,) if isinstance(key, str) else tuple(key)
        renamed = tuple((columns or {}).items())
        target = PostgresTarget(url, table, keys, renamed, None if give_up_after is None else to_ms(give_up_after))
        self._deliver(target, table, guarantee, name)

    def to_http(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        batch: int = 1,
        with_key: bool = False,
        concurrency: int = 4,
        timeout: Duration = "10 seconds",
        give_up_after: Duration | None = None,
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        name: str | None = None,
    ) -> None:
        """Post each record to a URL as JSON. The records of one key arrive in order.

        >>> alerts.to_http("https://example.org/alerts", headers={"Authorization": f"Bearer {token}"})

        Every request has an `Idempotency-Key` header, which stays the same when the request is repeated: delivery is
        exactly once if the server honours it. A record with a header `idempotency-key` is sent under that key, unless
        `batch` says several. A 4xx response turns the record into a dead letter.

        Args:
            url: The URL to post to.
            headers: Sent with each request.
            batch: The number of records per request; with more than one, the body is a JSON array.
            with_key: The body is `{"key": ..., "timestamp": ..., "value": ...}` instead of the value alone.
            concurrency: The number of requests in flight.
            timeout: The time limit of a request.
            give_up_after: How long to retry a request, with exponential backoff, before the query stops; by default the
                setting `retry_for`.
            guarantee: With `at_most_once`, a request that may have arrived is not repeated; its record becomes a dead
                letter.
            name: Names the step.
        """
        given = tuple((headers or {}).items())
        target = HttpTarget(
            url,
            given,
            batch,
            concurrency,
            to_ms(timeout),
            None if give_up_after is None else to_ms(give_up_after),
            with_key,
        )
        self._deliver(target, host_of(url) or "nowhere", guarantee, name)

    def to_webhook(
        self,
        endpoints: str | WebhookEndpoint | Sequence[str | WebhookEndpoint],
        *,
        secrets: str | Sequence[str] = (),
        with_key: bool = False,
        retry: Sequence[Duration] | None = None,
        concurrency: int = 4,
        timeout: Duration = "15 seconds",
        retention: Duration = "30 days",
        name: str | None = None,
    ) -> None:
        """Send each record as a webhook, signed as Standard Webhooks, to every endpoint.

        >>> orders.to_webhook("https://example.org/hooks", secrets=["env:WEBHOOK_SECRET"])

        A delivery is a record of the topic `<query>-webhooks`, written exactly once with the batch, and is sent from
        there: an endpoint that does not answer delays nothing else. Each endpoint gets it at least once, always with
        the same `webhook-id`. A 2xx response ends it; 410 disables the endpoint; anything else is retried. Attempts are
        records of `<query>-webhook-attempts`; `potok webhooks` lists them and sends deliveries again.

        Args:
            endpoints: URLs, or `WebhookEndpoint(url, secrets, name=..., headers=...)`.
            secrets: The secrets of endpoints that are given as URLs: `whsec_...`, `whsk_...`, `env:NAME`, `file:PATH`.
                Each of them signs.
            with_key: The body is `{"key": ..., "timestamp": ..., "value": ...}` instead of the value alone.
            retry: The pause after each failed attempt; by default ten attempts in three days. `Retry-After` is
                respected.
            concurrency: The number of requests in flight for each endpoint. Deliveries may overtake each other.
            timeout: The time limit of a request.
            retention: How long deliveries and attempts are retained and can be sent again, if the topics are created.
            name: Names the step, to which deliveries that wait belong.
        """
        shared = (secrets,) if isinstance(secrets, str) else tuple(secrets)
        given = [endpoints] if isinstance(endpoints, str | WebhookEndpoint) else endpoints
        chosen = tuple(each if isinstance(each, WebhookEndpoint) else WebhookEndpoint(each, shared) for each in given)
        schedule = RetrySchedule() if retry is None else RetrySchedule(tuple(to_ms(pause) for pause in retry))
        target = WebhookTarget(chosen, schedule, concurrency, to_ms(timeout), to_ms(retention), with_key)
        destination = chosen[0].name if chosen else "nowhere"
        self._deliver(target, destination or "nowhere", Guarantee.AT_LEAST_ONCE, name)

    def to_callable(
        self,
        function: Callable[..., Any],
        *,
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        name: str | None = None,
    ) -> None:
        """Call a function with the records of each batch, in the process that runs the query.

        >>> orders.to_callable(lambda records, batch: store.replace(batch, [r.value for r in records]))

        Args:
            function: Called with the records, and with the number of the batch if it takes two arguments. A record has
                `key`, `value`, `timestamp_ms` and `headers`. It may return `{index: reason}`: these records become
                dead letters. If it raises, the query stops, and the next start repeats the batch.
            guarantee: `exactly_once` needs the number of the batch: after a crash a batch is repeated with the same
                number, and the function must replace what it did for that number.
            name: Names the step.
        """
        at = calling_location()
        try:
            chosen = Function.of(function, (1, 2))
        except WrongArity as error:
            hint = "write lambda records: ... or lambda records, batch: ..."
            raise TopologyError(error.message, hint=hint, at=error.at or at) from error
        self._deliver(CallableTarget(chosen), chosen.name.split(".")[-1].strip("<>"), guarantee, name)
