"""Let each client make three requests per ten seconds; send the others to a topic of their own."""

from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

import potok
from potok import Producer, StreamsBuilder

CAPACITY, PER_SECOND = 3.0, 0.3


class TokenBucket(potok.Processor):
    """A bucket of tokens for each client, which is filled in event time."""

    bucket = potok.map_store()
    passed = potok.value_store(default=0, readable=True)

    def process(self, client: str, request: dict[str, Any], ctx: potok.ProcessorContext) -> None:
        """Take a token for a request, or reject it."""
        at = self.bucket.get("at", ctx.timestamp)
        now = max(at, ctx.timestamp)
        tokens = min(CAPACITY, self.bucket.get("tokens", CAPACITY) + (now - at) / 1000 * PER_SECOND)
        allowed = tokens >= 1
        self.bucket["tokens"] = tokens - allowed
        self.bucket["at"] = now
        if allowed:
            self.passed.set(self.passed.get() + 1)
        ctx.forward(request, to="allowed" if allowed else "rejected")


builder = StreamsBuilder("rate-limit")
requests = builder.stream("requests", value="path string")
limited = requests.process(TokenBucket, name="limit", outputs={"allowed": "path string", "rejected": "path string"})
limited["allowed"].to("allowed-requests")
limited["rejected"].to("rejected-requests")
limited["rejected"].group_by_key().count(name="rejected")

SAMPLE = [("ann", 0), ("ann", 1), ("bob", 1), ("ann", 2), ("ann", 2), ("ann", 3), ("ann", 9), ("bob", 10)]
"""Client and second of each request."""


def records() -> list[tuple[str, dict[str, object], int]]:
    """Return key, value and timestamp of each record of the sample."""
    return [(client, {"path": f"/items/{number}"}, at * 1000) for number, (client, at) in enumerate(SAMPLE)]


def report(tables: Mapping[str, Any]) -> None:
    """Print how many requests of each client were allowed and rejected."""
    rejected = tables["rejected"].all()
    for client, passed in sorted(tables["limit.passed"].all().items()):
        print(f"{client}: {passed} allowed, {rejected.get(client, 0)} rejected")


def main() -> None:
    """Send the sample to an empty log, run the program to its end, and print the tables."""
    with TemporaryDirectory() as log:
        with Producer(log) as producer:
            for client, value, at in records():
                producer.send("requests", value, key=client, timestamp=at)
        potok.run(builder, broker=log, until_end=True)
        with potok.open_tables(log, "rate-limit") as tables:
            report(tables)


if __name__ == "__main__":
    main()
