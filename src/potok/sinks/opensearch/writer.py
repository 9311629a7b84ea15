"""Write batches to an index with bulk requests; retry single items, and report those that never fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import orjson

from potok.redact import safe_cause
from potok.retry_policy import BRIEFLY_MS, GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.opensearch.bulk import Action, ItemResult, item_results, requests
from potok.sinks.opensearch.client import NOT_NOW, NoAnswer, OpenSearchClient, Response
from potok.sinks.opensearch.fence import OpenSearchFence, Unavailable
from potok.sinks.sink_spec import Batch, Failures, Opening, Rows, SinkWriter

if TYPE_CHECKING:
    from potok.sinks.opensearch.opensearch import OpenSearchTarget

T = TypeVar("T")

TOO_LARGE = 413

NOT_HERE = frozenset({401, 403, 404})
"""Of an item: the index does not exist and cannot be created, or the user may not write it."""

KEEP_DELETES = "1h"
"""How long the server remembers the versions of deleted documents, in an index that this sink creates."""

_SETTINGS = orjson.dumps({"settings": {"index.gc_deletes": KEEP_DELETES}})


class OpenSearchWriter(SinkWriter):
    """Indexes and deletes documents; the last record of a key that the server accepts wins."""

    def __init__(self, target: OpenSearchTarget, opening: Opening) -> None:
        self._target, self._opening = target, opening
        self._exactly = opening.guarantee is Guarantee.EXACTLY_ONCE
        self._once = opening.guarantee is Guarantee.AT_MOST_ONCE
        self._client = OpenSearchClient(target.url, dict(target.headers), target.timeout_ms)
        self._fence = OpenSearchFence(self._client, opening, target.label)
        self._retried(opening.committed + 1, self._open, GIVE_UP_MS)

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        version = None
        if self._exactly:
            self._retried(batch.number, lambda: self._fence.advance(batch.number), BRIEFLY_MS)
            version = self._fence.version(batch.number)
        by_key: dict[str, list[Action]] = defaultdict(list)
        for row, (key, value) in enumerate(zip(rows.keys, rows.values, strict=True)):
            by_key[key].append(Action(row, key, value))
        failures: Failures = {}
        retry = Retry(self._target.give_up_after_ms or (GIVE_UP_MS if self._once else BRIEFLY_MS))
        while by_key:
            actions = [found[-1] for found in by_key.values()]
            again = 0
            reason = ""
            for chosen, body in requests(actions, self._target.index, version, self._target.bulk_bytes):
                for action, result in zip(chosen, self._bulk(batch, chosen, body, retry), strict=True):
                    if result.taken:
                        del by_key[action.identifier]
                    elif result.passes and not self._once:
                        again, reason = again + 1, result.error
                    else:
                        self._refuse(batch, action, result, by_key, failures)
            if again and not retry.wait():
                raise self._failed(batch.number, f"it put off {again:,} documents, one with: {reason}", passing=True)
        return dict(sorted(failures.items()))

    def _refuse(
        self, batch: Batch, action: Action, result: ItemResult, by_key: dict[str, list[Action]], failures: Failures
    ) -> None:
        """Note a rejected record, and leave the one before it in the batch to be written instead."""
        if result.conflicts and self._exactly:
            raise self._conflict(batch, action)
        if result.status in NOT_HERE and not self._once:
            raise self._failed(batch.number, result.error)
        failures[action.row] = result.error or f"HTTP {result.status}"
        by_key[action.identifier].pop()
        if not by_key[action.identifier]:
            del by_key[action.identifier]

    def _bulk(self, batch: Batch, actions: list[Action], body: bytes, retry: Retry) -> list[ItemResult]:
        """Send one bulk request until it is answered; return the result of each action."""
        while True:
            try:
                response = self._client.request(
                    "POST", "/_bulk?filter_path=items.*.status,items.*.error", body, lines=True
                )
            except NoAnswer as error:
                if self._once:
                    return [ItemResult(0, f"no answer: {error}")] * len(actions)
                if not retry.wait():
                    raise self._failed(batch.number, str(error), passing=True) from safe_cause(error)
                continue
            if response.status == TOO_LARGE:
                return self._halves(batch, actions, response, retry)
            if response.accepted:
                results = item_results(response.body, actions)
                if results is None:
                    raise self._failed(batch.number, "its answer to a bulk request is not one of OpenSearch")
                return results
            if self._once:
                return [ItemResult(response.status, str(response))] * len(actions)
            if response.status not in NOT_NOW:
                raise self._failed(batch.number, str(response))
            if not retry.wait():
                raise self._failed(batch.number, str(response), passing=True)

    def _halves(self, batch: Batch, actions: list[Action], response: Response, retry: Retry) -> list[ItemResult]:
        """Send the halves of a request that is too large for the server; a single document that is becomes a dead
        letter."""
        if len(actions) == 1:
            return [ItemResult(TOO_LARGE, f"the document is too large for the server: {response}")]
        version = self._fence.version(batch.number) if self._exactly else None
        middle = len(actions) // 2
        found: list[ItemResult] = []
        for half in (actions[:middle], actions[middle:]):
            body = b"".join(action.to_lines(self._target.index, version) for action in half)
            found += self._bulk(batch, half, body, retry)
        return found

    def _conflict(self, batch: Batch, action: Action) -> Exception:
        """Return the error of a document with a later version, which only another writer can have written."""
        try:
            self._fence.advance(batch.number)
        except (NoAnswer, Unavailable) as error:
            return self._failed(batch.number, str(error), passing=True)
        cause = f'document "{action.identifier}" has a later version than this query gives'
        remedy = (
            "another program writes to the index, or its fence was deleted: choose another index, or delete this one"
        )
        return self._failed(batch.number, cause, remedy=remedy)

    def _open(self) -> None:
        """Check that the index can be written, create it if it does not exist, and claim the fence."""
        path = f"/{quote(self._target.index, safe='')}"
        found = self._client.request("HEAD", path)
        if found.status == 404:
            found = self._client.request("PUT", path, _SETTINGS)
            if found.status == 400 and "resource_already_exists" in str(found):
                found = Response(200, {})
        if not found.accepted:
            raise Unavailable(found)
        if self._exactly:
            self._fence.claim()

    def _retried(self, batch: int, work: Callable[[], T], retry_ms: int) -> T:
        retry = Retry(self._target.give_up_after_ms or retry_ms)
        while True:
            try:
                return work()
            except (NoAnswer, Unavailable) as error:
                passing = isinstance(error, NoAnswer) or error.response.status in NOT_NOW
                if not passing or not retry.wait():
                    raise self._failed(batch, str(error), passing=passing) from safe_cause(error)

    def _failed(self, batch: int, cause: str, *, passing: bool = False, remedy: str | None = None) -> DeliveryFailed:
        """Transient, unless `give_up_after` has already limited the retries."""
        passing = passing and self._target.give_up_after_ms is None
        step, label = self._opening.step, self._target.label
        return DeliveryFailed(step, label, batch, cause, lost=self._once, passing=passing, remedy=remedy)

    def close(self) -> None:
        self._client.close()
