"""The fence of an index: a document that each start of the query claims, with the last batch.

Each claim increments the generation, which is the upper part of the versions of all documents. So what a replaced
process still writes has lower versions than what its successor has written, and the server rejects it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from potok.sinks.errors import SinkAhead, SinkTaken
from potok.sinks.opensearch.client import OpenSearchClient, Response
from potok.sinks.sink_spec import Opening

INDEX = "potok-fences"

_BATCH_BITS = 40


class Unavailable(Exception):
    """The server did not execute a request of the fence."""

    def __init__(self, response: Response) -> None:
        super().__init__(str(response))
        self.response = response


@dataclass(slots=True)
class OpenSearchFence:
    """The fence of one sink, and its document as last seen."""

    client: OpenSearchClient
    opening: Opening
    label: str
    generation: int = 0
    _sequence: str = ""

    def claim(self) -> None:
        """Take over the sink from earlier starts; check that it is not ahead of the query."""
        while True:
            found = self._get()
            source = found.body.get("_source", {}) if found.status == 200 else {}
            last = int(source.get("batch", self.opening.committed))
            if last > self.opening.committed + 1:
                raise self._ahead(last)
            self.generation = int(source.get("generation", 0)) + 1
            self._sequence = _sequence(found.body) if found.status == 200 else "op_type=create"
            if self._put(last):
                return

    def advance(self, batch: int) -> None:
        """Record the batch that is going to be written; raise if a later start has claimed the sink."""
        if self._put(batch):
            return
        found = self._get()
        # A write whose answer was lost is found as our own.
        if found.status == 200 and found.body["_source"].get("generation") == self.generation:
            self._sequence = _sequence(found.body)
            if self._put(batch):
                return
        raise self.taken()

    def version(self, batch: int) -> int:
        """Return the version of all documents of a batch."""
        return (self.generation << _BATCH_BITS) + batch

    def taken(self) -> SinkTaken:
        owner = f'a later start of query "{self.opening.query}"'
        return SinkTaken(self.opening.step, self.label, owner, "stop one of the two")

    def _ahead(self, last: int) -> SinkAhead:
        path = f"{INDEX}/_update/{self._id}"
        remedy = f"""empty the index, or choose another, and then send POST {path} {{"doc": {{"batch": 0}}}}"""
        return SinkAhead(self.opening.step, self.label, last, self.opening.committed, remedy)

    @property
    def _id(self) -> str:
        return quote(f"{self.opening.query}:{self.opening.step}", safe="")

    def _get(self) -> Response:
        found = self.client.request("GET", f"/{INDEX}/_doc/{self._id}")
        if found.status not in (200, 404):
            raise Unavailable(found)
        return found

    def _put(self, batch: int) -> bool:
        """Write the document if it is still the one that was seen."""
        document = {"generation": self.generation, "epoch": self.opening.epoch, "batch": batch}
        path = f"/{INDEX}/_doc/{self._id}?{self._sequence}"
        found = self.client.request("PUT", path, orjson.dumps(document))
        if found.status == 409:
            return False
        if not found.accepted:
            raise Unavailable(found)
        self._sequence = _sequence(found.body)
        return True


def _sequence(body: Any) -> str:
    return f"if_seq_no={body['_seq_no']}&if_primary_term={body['_primary_term']}"
