"""An index in a real OpenSearch."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from tests.sinks.rows import deliver, opening, rows_of, typed

from potok import StreamsBuilder
from potok.sinks.errors import DeliveryFailed, SinkAhead, SinkTaken
from potok.sinks.guarantee import Guarantee
from potok.sinks.opensearch.fence import OpenSearchFence
from potok.sinks.opensearch.opensearch import OpenSearchTarget
from potok.sinks.sink_spec import Batch, Failures, SinkWriter, Types
from potok.testing import TestDriver

ORDERS = Types(typed("string"), typed("name string, amount bigint"))
DYNAMIC = Types(typed("string"), None)


class Search:
    """A client besides that of the sink, and an index that no other test uses."""

    def __init__(self, url: str) -> None:
        self.url, self.index, self.query = url, f"i-{uuid.uuid4().hex[:8]}", f"q-{uuid.uuid4().hex[:8]}"
        self._pool = urllib3.PoolManager()
        self._writers: list[SinkWriter] = []

    def request(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        found = self._pool.request(
            method, f"{self.url}/{path}", body=data, headers={"Content-Type": "application/json"}
        )
        return found.json() if found.data else {}

    def target(self, *, bulk_bytes: int = 100_000) -> OpenSearchTarget:
        return OpenSearchTarget(self.url, self.index, (), bulk_bytes, 10_000, 5_000)

    def open(self, types: Types = ORDERS, *, bulk_bytes: int = 100_000, **options: Any) -> SinkWriter:
        found = self.target(bulk_bytes=bulk_bytes).open(opening(types, query=self.query, **options))
        self._writers.append(found)
        return found

    def put(
        self, sink_writer: SinkWriter, records: list[tuple[Any, Any]], batch: Batch, types: Types = ORDERS
    ) -> Failures:
        return deliver(self.target(), sink_writer, rows_of(records, types), types, batch)

    @property
    def documents(self) -> dict[str, Any]:
        self.request("POST", f"{self.index}/_refresh")
        found = self.request("GET", f"{self.index}/_search?size=10000")
        return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}

    def close(self) -> None:
        for each in self._writers:
            each.close()
        self._pool.clear()


@pytest.fixture
def search(opensearch_url: str) -> Iterator[Search]:
    found = Search(opensearch_url)
    yield found
    found.close()


def order(name: str, amount: int = 1) -> dict[str, Any]:
    return {"name": name, "amount": amount}


def test_a_value_replaces_the_document_of_its_key_and_a_null_value_deletes_it(search: Search) -> None:
    sink_writer = search.open()
    assert search.put(sink_writer, [("a", order("x")), ("b", order("y")), ("a", order("z"))], Batch(1, 1)) == {}
    assert search.documents == {"a": order("z"), "b": order("y")}
    search.put(sink_writer, [("a", None), ("c", None), ("b", None), ("b", order("w"))], Batch(1, 2))
    assert search.documents == {"b": order("w")}


def test_a_repeated_batch_leaves_the_same_documents(search: Search) -> None:
    records: list[tuple[Any, Any]] = [("a", order("x")), ("b", None), ("c", order("y"))]
    first = search.open()
    search.put(first, records, Batch(1, 1))
    search.put(first, records, Batch(1, 1))
    search.put(search.open(epoch=2), records, Batch(2, 1))
    assert search.documents == {"a": order("x"), "c": order("y")}


def test_an_earlier_start_cannot_overwrite_what_a_later_one_has_written(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie = search.open()
    search.put(zombie, [("a", order("x")), ("b", order("x"))], Batch(1, 1))
    later = search.open(epoch=2, committed=1)
    search.put(later, [("a", order("later")), ("b", None)], Batch(2, 2))
    with pytest.raises(SinkTaken, match="a later start"):
        search.put(zombie, [("a", order("zombie"))], Batch(1, 2))
    # Had the zombie checked the fence just before, its documents would have lower versions.
    monkeypatch.setattr(OpenSearchFence, "advance", lambda self, batch: None)
    with pytest.raises(DeliveryFailed, match="later version"):
        search.put(zombie, [("a", order("zombie"))], Batch(1, 2))
    with pytest.raises(DeliveryFailed, match="later version"):
        search.put(zombie, [("b", order("zombie"))], Batch(1, 2))
    assert search.documents == {"a": order("later")}


def test_each_start_returns_later_versions_even_if_the_query_was_started_over(search: Search) -> None:
    search.put(search.open(epoch=9), [("a", order("before"))], Batch(9, 1))
    search.put(search.open(epoch=1), [("a", order("after"))], Batch(1, 1))
    assert search.documents == {"a": order("after")}


def test_a_query_that_was_started_over_does_not_overwrite_later_batches(search: Search) -> None:
    search.put(search.open(committed=6), [("a", order("x"))], Batch(1, 7))
    with pytest.raises(SinkAhead, match="has seen batch 7") as raised:
        search.open(epoch=2)
    words = str(raised.value.hint).partition("send POST ")[2].split(" ", 1)
    search.request("POST", words[0], json.loads(words[1]))
    search.put(search.open(epoch=2), [("a", order("y"))], Batch(2, 1))
    assert search.documents == {"a": order("y")}


def test_documents_that_do_not_fit_the_mapping_are_refused_and_the_others_written(search: Search) -> None:
    search.request("PUT", search.index, {"mappings": {"dynamic": "strict", "properties": {"n": {"type": "integer"}}}})
    sink_writer = search.open(DYNAMIC)
    records = [("a", {"n": 1}), ("b", {"n": "many"}), ("c", {"m": 1}), ("d", [1]), (None, {"n": 1}), ("e", {"n": 2})]
    refused = search.put(sink_writer, records, Batch(1, 1), DYNAMIC)
    assert refused.keys() == {1, 2, 3, 4}
    assert "mapper_parsing_exception" in refused[1] and "many" in refused[1]
    assert "strict_dynamic_mapping_exception" in refused[2]
    assert search.documents == {"a": {"n": 1}, "e": {"n": 2}}


def test_the_last_document_of_a_key_that_fits_is_kept(search: Search) -> None:
    search.request("PUT", search.index, {"mappings": {"properties": {"n": {"type": "integer"}}}})
    sink_writer = search.open(DYNAMIC)
    refused = search.put(sink_writer, [("a", {"n": 1}), ("a", {"n": 2}), ("a", {"n": "x"})], Batch(1, 1), DYNAMIC)
    assert refused.keys() == {2}
    assert search.documents == {"a": {"n": 2}}


def test_requests_are_split_by_bytes_and_halved_if_the_server_takes_less(search: Search) -> None:
    sink_writer = search.open(bulk_bytes=500)
    search.put(sink_writer, [(f"k{n}", order("x", n)) for n in range(50)], Batch(1, 1))
    assert len(search.documents) == 50
    large = search.open(bulk_bytes=20_000_000, epoch=2, committed=1)
    records = [(f"k{n}", order("x" * 300_000, n)) for n in range(8)] + [("huge", order("x" * 1_100_000))]
    refused = search.put(large, records, Batch(2, 2))
    assert refused.keys() == {8} and "too large" in refused[8]
    assert {len(search.documents[f"k{n}"]["name"]) for n in range(8)} == {300_000}


@pytest.mark.parametrize("guarantee", [Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE])
def test_other_guarantees_leave_no_versions_and_no_fence(search: Search, guarantee: Guarantee) -> None:
    sink_writer = search.open(guarantee=guarantee)
    assert search.put(sink_writer, [("a", order("x")), ("b", None)], Batch(1, 5)) == {}
    assert search.put(sink_writer, [("a", order("y"))], Batch(1, 1)) == {}
    assert search.documents == {"a": order("y")}
    fence = search.request("GET", f"potok-fences/_doc/{search.query}:orders.sink")
    assert not fence.get("found", False)


def test_ids_are_the_keys_as_text(search: Search) -> None:
    types = Types(None, None)
    sink_writer = search.open(types)
    records = [("ä/ö", {"n": 1}), (7, {"n": 2}), ("x" * 513, {"n": 3}), ("", {"n": 4})]
    assert search.put(sink_writer, records, Batch(1, 1), types).keys() == {2, 3}
    assert search.documents == {"ä/ö": {"n": 1}, "7": {"n": 2}}


def test_a_table_and_its_deleted_rows_reach_the_index(search: Search) -> None:
    builder = StreamsBuilder(search.query)
    builder.table("users", value="name string").to_opensearch(search.url, search.index)
    with TestDriver(builder) as driver:
        for key, value in (("u1", {"name": "ann"}), ("u2", {"name": "bob"}), ("u1", None)):
            driver.send("users", value, key=key)
            driver.run()
    assert search.documents == {"u2": {"name": "bob"}}
