"""Maintain a cache in Redis: a value replaces that of its key, and a null value deletes the key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import TopologyError
from potok.extras import need_extra
from potok.sinks.guarantee import Guarantee
from potok.sinks.json_bodies import json_documents
from potok.sinks.key_texts import keys_as_texts
from potok.sinks.sink_spec import Failures, Opening, Prepared, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.urls import address_of, clear_url

RedisFormat = Literal["json", "hash"]

SCHEMES = ("redis", "rediss")


@dataclass(frozen=True, slots=True)
class RedisTarget(SinkSpec):
    """Keys of one server that start with a prefix. The URL may contain a password and is not shown."""

    verb: ClassVar[str] = "to_redis"

    url: str = field(repr=False)
    prefix: str
    format: RedisFormat
    ttl_ms: int | None
    give_up_after_ms: int | None

    @property
    def label(self) -> str:
        return f'keys "{self.prefix}*" at {address_of(self.url)}'

    def check(self, types: Types, guarantee: Guarantee) -> None:
        need_extra("to_redis", "redis")
        if self.url.partition(":")[0] not in SCHEMES or not clear_url(self.url).hosts:
            raise TopologyError("this is not a Redis server", hint='write "redis://localhost:6379/0"')
        if self.format not in ("json", "hash"):
            raise TopologyError(f'there is no format "{self.format}" in Redis', hint='use "json" or "hash"')
        if self.format == "hash" and types.value is not None and not pa.types.is_struct(types.value):
            hint = 'use format="json", or values with fields'
            raise TopologyError("a hash needs values with fields", hint=hint)
        if self.ttl_ms is not None and self.ttl_ms < 1:
            raise TopologyError("ttl is too short", hint='write ttl="1 hour"')

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """Prepare keys with their prefix, and values as JSON; a null value remains null."""
        keys = keys_as_texts(rows.key, required=True)
        values = json_documents(rows.value)
        failures = {**values.errors, **keys.errors}
        if self.format == "hash":
            failures = {**_without_fields(values.values), **failures}
        named = pc.binary_join_element_wise(self.prefix, keys.values, "")
        return Prepared(named, values.values, failures)

    def open(self, opening: Opening) -> SinkWriter:
        from potok.sinks.redis.writer import RedisWriter  # imports the client

        return RedisWriter(self, opening)


def _without_fields(documents: pa.Array) -> Failures:
    """Return the records whose value is not a hash; a null value deletes one."""
    is_object = pc.and_(pc.starts_with(documents, "{"), pc.not_equal(documents, pa.scalar(b"{}")))
    rows: list[int] = pc.indices_nonzero(pc.invert(is_object).fill_null(False)).to_pylist()
    return dict.fromkeys(rows, "a hash needs a value with at least one field")
