"""Sinks outside the log: files, PostgreSQL, HTTP, and functions of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import Handle
from potok.duration import Duration, to_ms
from potok.errors import Location, TopologyError
from potok.expressions.function import Function, WrongArity
from potok.sinks.callable import CallableTarget
from potok.sinks.file_formats import COMPRESSIONS
from potok.sinks.files import FilesTarget
from potok.sinks.guarantee import Guarantee
from potok.sinks.http.http import HttpTarget
from potok.sinks.postgres.postgres import PostgresTarget
from potok.sinks.sink_spec import SinkSpec
from potok.sinks.urls import host_of
from potok.topology.nodes import Deliver


class UnnamedSink(TopologyError):
    """Two sinks that would be told apart by their order in the program alone."""

    def __init__(self, derived: str, at: Location | None) -> None:
        super().__init__(
            f'a sink needs a name here: "{derived}" would depend on the order of the lines',
            hint='a sink knows by its name which batches it has: pass one, for example name="orders_to_shop"',
            at=at,
        )


def guarantee_of(given: str, at: Location | None) -> Guarantee:
    try:
        return Guarantee.of(given)
    except TopologyError as error:
        error.at = error.at or at
        raise


class ExternalSinks(Handle):
    """The verbs that deliver records outside the log. They end a stream; what was delivered does not come back."""

    def to_files(
        self,
        path: str | Path,
        format: str = "parquet",
        *,
        compression: str = "",
        with_key: bool = False,
        guarantee: str = Guarantee.EXACTLY_ONCE,
        name: str = "",
    ) -> None:
        """Write files into a directory, one or more for each batch.

        >>> orders.to_files("lake/orders")
        >>> counts.to_stream().to_files("lake/counts", format="json", with_key=True)

        Args:
            path: The directory. All of Spark's workers must see it under this path.
            format: `parquet` needs typed values, whose fields become columns; `json` writes a line for each record.
            compression: `zstd`, `snappy`, `gzip` or `none` for Parquet; `none`, `gzip` or `zstd` for JSON.
            with_key: Write key, timestamp and value, instead of the value alone; a null value needs it.
            guarantee: With `exactly_once` the directory belongs to this sink alone.
            name: Names the step; the directory is found to be its own by it.
        """
        chosen = compression or COMPRESSIONS.get(format, ("",))[0]
        target = FilesTarget(str(Path(path).expanduser().resolve()), format, chosen, with_key)
        self._deliver(target, Path(target.path).name, guarantee, name)

    def to_postgres(
        self,
        url: str,
        table: str,
        *,
        key: str | Sequence[str] = (),
        columns: Mapping[str, str] | None = None,
        give_up_after: Duration | None = None,
        guarantee: str = Guarantee.EXACTLY_ONCE,
        name: str = "",
    ) -> None:
        """Keep the rows of a PostgreSQL table current: the record of a key replaces its row, a null value deletes it.

        >>> counts.to_stream().to_postgres("postgresql://app@localhost/shop", "order_counts")
        >>> orders.to_postgres(url, "orders", key="order_id")

        Args:
            url: As libpq reads it; a password may stand in `PGPASSWORD` or in `~/.pgpass` instead.
            table: Created if it does not exist; `"shop.orders"` names a schema too.
            key: The fields of the value that tell a row; the key of the record if left out.
            columns: Other names for columns. They have the names of the fields; a key or a value that has none is
                in the column `key` or `value`.
            give_up_after: How long a server that does not answer is tried again before the query stops; as long as the
                setting `retry_for` says if left out.
            guarantee: With `exactly_once`, the table `potok_fences` in the same database says which batch was written.
            name: Names the step: its fence is found under it.
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
        guarantee: str = Guarantee.EXACTLY_ONCE,
        name: str = "",
    ) -> None:
        """Post each record to a web address as JSON; those of one key arrive in order.

        >>> alerts.to_http("https://example.org/alerts", headers={"Authorization": f"Bearer {token}"})

        Every request carries a header `Idempotency-Key`, which is the same when the request comes again: exactly once
        holds if the server goes by it. An answer 4xx makes a dead letter of the record.

        Args:
            url: Where to post.
            headers: Sent with each request.
            batch: How many records go into a request; with more than one, the body is a JSON array.
            with_key: The body is `{"key": ..., "timestamp": ..., "value": ...}` instead of the value alone.
            concurrency: How many requests are under way at a time.
            timeout: How long a request may take.
            give_up_after: How long a request is tried again, ever more slowly, before the query stops; as long as the
                setting `retry_for` says if left out.
            guarantee: With `at_most_once` a request that may have arrived is not sent again; its record becomes a dead
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

    def to_callable(
        self, function: Callable[..., Any], *, guarantee: str = Guarantee.EXACTLY_ONCE, name: str = ""
    ) -> None:
        """Hand the records of each batch to a function, in the process that runs the query.

        >>> orders.to_callable(lambda records, batch: store.replace(batch, [r.value for r in records]))

        Args:
            function: Called with the records, and with the number of the batch if it takes two arguments. A record has
                `key`, `value`, `timestamp_ms` and `headers`. It may return `{index: reason}`: these records become
                dead letters. If it raises, the query stops, and the batch comes again at the next start.
            guarantee: `exactly_once` needs the number of the batch: after a crash a batch comes again under its number,
                and the function must replace what it did for that number.
            name: Names the step.
        """
        at = calling_location()
        try:
            chosen = Function.of(function, (1, 2))
        except WrongArity as error:
            hint = "write lambda records: ... or lambda records, batch: ..."
            raise TopologyError(error.message, hint=hint, at=error.at or at) from error
        self._deliver(CallableTarget(chosen), chosen.name.split(".")[-1].strip("<>"), guarantee, name)

    def _deliver(self, target: SinkSpec, place: str, guarantee: str, name: str) -> None:
        at = calling_location()
        promised = guarantee_of(guarantee, at)
        derived = f"{self._node.name}.{target.verb}.{place}"
        step = self._graph.step_name(name, derived)
        if not name and promised is Guarantee.EXACTLY_ONCE and self._graph.is_counted(step):
            raise UnnamedSink(derived, at)
        self._graph.add(Deliver(step, at, self._node, target, promised))
