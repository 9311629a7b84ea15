from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import redis as client
from tests.sinks.rows import deliver, opening, rows_of, typed

from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.sinks.errors import DeliveryFailed, SinkAhead, SinkTaken
from potok.sinks.guarantee import Guarantee
from potok.sinks.redis import writer
from potok.sinks.redis.redis import RedisTarget
from potok.sinks.sink_spec import Batch, SinkWriter, Types
from potok.testing import TestDriver

ORDERS = Types(typed("string"), typed("name string, amount bigint"))
COUNTS = Types(typed("string"), typed("bigint"))
DYNAMIC = Types(None, None)


class Cache:
    """A connection besides that of the sink, and a prefix that no other test uses."""

    def __init__(self, url: str) -> None:
        self.url, self.prefix, self.query = url, f"{uuid.uuid4().hex[:8]}:", f"q-{uuid.uuid4().hex[:8]}"
        self.client: Any = client.Redis.from_url(url)
        self._writers: list[SinkWriter] = []
        self._targets: dict[int, Any] = {}

    def target(self, *, format: Any = "json", ttl_ms: int | None = None, give_up_after_ms: int | None = 2_000) -> Any:
        return RedisTarget(self.url, self.prefix, format, ttl_ms, give_up_after_ms)

    def open(self, target: Any, types: Types, **options: Any) -> SinkWriter:
        found = target.open(opening(types, query=self.query, **options))
        self._writers.append(found)
        self._targets[id(found)] = target
        return found

    def put(self, sink_writer: SinkWriter, records: list[tuple[Any, Any]], types: Types, batch: Batch) -> Any:
        return deliver(self._targets[id(sink_writer)], sink_writer, rows_of(records, types), types, batch)

    @property
    def values(self) -> dict[str, bytes]:
        names = sorted(name.decode() for name in self.client.keys(f"{self.prefix}*"))
        return {name.removeprefix(self.prefix): self.client.get(name) for name in names}

    def close(self) -> None:
        for each in self._writers:
            each.close()
        self.client.close()


@pytest.fixture
def cache(redis_url: str) -> Iterator[Cache]:
    found = Cache(redis_url)
    yield found
    found.close()


def test_a_value_replaces_that_of_its_key_and_a_null_value_deletes_it(cache: Cache) -> None:
    sink_writer = cache.open(cache.target(), COUNTS)
    assert cache.put(sink_writer, [("a", 1), ("b", 2), ("a", 3)], COUNTS, Batch(1, 1)) == {}
    assert cache.values == {"a": b"3", "b": b"2"}
    cache.put(sink_writer, [("a", None), ("c", 5), ("c", None), ("b", None), ("b", 4)], COUNTS, Batch(1, 2))
    assert cache.values == {"b": b"4"}


def test_a_repeated_batch_leaves_the_same_values(cache: Cache) -> None:
    first = cache.open(cache.target(), COUNTS)
    cache.put(first, [("a", 1), ("b", 2)], COUNTS, Batch(1, 1))
    second = cache.open(cache.target(), COUNTS, epoch=2)
    cache.put(second, [("a", 1), ("b", 2)], COUNTS, Batch(2, 1))
    assert cache.values == {"a": b"1", "b": b"2"}


def test_an_earlier_start_cannot_overwrite_what_a_later_one_has_written(cache: Cache) -> None:
    zombie = cache.open(cache.target(), COUNTS)
    cache.put(zombie, [("a", 1)], COUNTS, Batch(1, 1))
    later = cache.open(cache.target(), COUNTS, epoch=2, committed=1)
    cache.put(later, [("a", 2)], COUNTS, Batch(2, 2))
    with pytest.raises(SinkTaken, match="a later start"):
        cache.put(zombie, [("a", 9)], COUNTS, Batch(1, 2))
    with pytest.raises(SinkTaken):
        cache.open(cache.target(), COUNTS, epoch=1, committed=1)
    assert cache.values == {"a": b"2"}


def test_a_query_that_was_started_over_does_not_overwrite_later_batches(cache: Cache) -> None:
    sink_writer = cache.open(cache.target(), COUNTS, committed=6)
    cache.put(sink_writer, [("a", 7)], COUNTS, Batch(1, 7))
    with pytest.raises(SinkAhead, match="has seen batch 7") as raised:
        cache.open(cache.target(), COUNTS, epoch=2)
    assert "redis-cli DEL 'potok:fence:" in str(raised.value.hint)


def test_the_fence_of_a_cache_that_was_emptied_is_written_again(cache: Cache) -> None:
    sink_writer = cache.open(cache.target(), COUNTS)
    cache.put(sink_writer, [("a", 1)], COUNTS, Batch(1, 1))
    cache.client.delete(f"potok:fence:{cache.query}:orders.sink")
    cache.put(sink_writer, [("b", 2)], COUNTS, Batch(1, 2))
    assert cache.values == {"a": b"1", "b": b"2"}
    later = cache.open(cache.target(), COUNTS, epoch=2, committed=2)
    cache.put(later, [("b", 3)], COUNTS, Batch(2, 3))
    with pytest.raises(SinkTaken):
        cache.put(sink_writer, [("b", 9)], COUNTS, Batch(1, 3))


def test_keys_expire_after_their_last_write(cache: Cache) -> None:
    sink_writer = cache.open(cache.target(ttl_ms=60_000), COUNTS)
    cache.put(sink_writer, [("a", 1)], COUNTS, Batch(1, 1))
    assert 50_000 < cache.client.pttl(f"{cache.prefix}a") <= 60_000
    assert cache.client.pttl(f"potok:fence:{cache.query}:orders.sink") == -1


def test_a_hash_has_a_string_for_each_field_and_none_of_the_value_before(cache: Cache) -> None:
    sink_writer = cache.open(cache.target(format="hash", ttl_ms=60_000), DYNAMIC)
    name = f"{cache.prefix}o1"
    cache.put(sink_writer, [("o1", {"name": "ann", "amount": 1, "items": ["x"], "gone": 1})], DYNAMIC, Batch(1, 1))
    cache.put(sink_writer, [("o1", {"name": "bob", "amount": 1.5, "items": [], "gone": None})], DYNAMIC, Batch(1, 2))
    assert cache.client.hgetall(name) == {b"name": b"bob", b"amount": b"1.5", b"items": b"[]"}
    assert cache.client.pttl(name) > 0
    assert cache.put(sink_writer, [("o1", [1]), ("o2", {})], DYNAMIC, Batch(1, 3)).keys() == {0, 1}
    assert cache.client.hgetall(name)[b"name"] == b"bob"
    cache.put(sink_writer, [("o1", None)], DYNAMIC, Batch(1, 4))
    assert cache.client.exists(name) == 0


def test_keys_of_any_type_are_text(cache: Cache) -> None:
    sink_writer = cache.open(cache.target(), DYNAMIC)
    refused = cache.put(sink_writer, [("é", 1), (7, 2), ({"a": 1}, 3), (None, 4)], DYNAMIC, Batch(1, 1))
    assert refused.keys() == {3} and "has no key" in refused[3]
    assert cache.values == {"é": b"1", "7": b"2", '{"a":1}': b"3"}


def test_a_large_batch_is_split_by_keys_and_bytes(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SCRIPT_KEYS", 7)
    monkeypatch.setattr(writer, "SCRIPT_BYTES", 40)
    sink_writer = cache.open(cache.target(), COUNTS)
    cache.put(sink_writer, [(f"k{n}", n) for n in range(100)], COUNTS, Batch(1, 1))
    assert cache.values == {f"k{n}": b"%d" % n for n in range(100)}


@pytest.mark.parametrize("guarantee", [Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE])
def test_other_guarantees_leave_no_fence(cache: Cache, guarantee: Guarantee) -> None:
    sink_writer = cache.open(cache.target(), COUNTS, guarantee=guarantee)
    cache.put(sink_writer, [("a", 1)], COUNTS, Batch(1, 1))
    assert cache.values == {"a": b"1"}
    assert cache.client.exists(f"potok:fence:{cache.query}:orders.sink") == 0


def test_a_server_that_is_not_there_is_reported(cache: Cache) -> None:
    cache.url = "redis://:secret-password@127.0.0.1:9/0"
    with pytest.raises(DeliveryFailed) as raised:
        cache.open(cache.target(give_up_after_ms=1), COUNTS)
    assert "secret-password" not in str(raised.value)
    assert not raised.value.passing


def test_a_table_is_maintained_with_its_deleted_rows(cache: Cache) -> None:
    builder = StreamsBuilder(cache.query)
    users = builder.table("users", value="name string")
    users.to_redis(cache.url, prefix=cache.prefix)
    with TestDriver(builder) as driver:
        for key, value in (("u1", {"name": "ann"}), ("u2", {"name": "bob"}), ("u1", None)):
            driver.send("users", value, key=key)
            driver.run()
    assert cache.values == {"u2": b'{"name":"bob"}'}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"url": "http://localhost"}, "not a Redis server"),
        ({"format": "list"}, "there is no format"),
        ({"ttl": "0 seconds"}, "too short"),
    ],
)
def test_what_can_never_be_written_is_refused_at_build(options: dict[str, Any], why: str) -> None:
    builder = StreamsBuilder("caching")
    builder.stream("orders").to_redis(**{"url": "redis://127.0.0.1:9", "prefix": "o:", **options})
    with pytest.raises(TopologyError, match=why), TestDriver(builder):
        pass
