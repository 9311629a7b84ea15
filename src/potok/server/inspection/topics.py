"""Topics: sizes, retention, who reads and writes them, and their records."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Query, Request, Response

from potok.log.broker import TopicDescription
from potok.log.plain_topics import description, summary
from potok.server.access.guard import answer_of, caller_of
from potok.server.access.rights import topic_names
from potok.server.access.tokens import READ
from potok.server.answers import AnswerSize
from potok.server.api.feeds import format_positions, parse_positions
from potok.server.api.tables import answer
from potok.server.context import Site, site_of
from potok.server.errors import BadRequest, NotThere
from potok.server.inspection.browse import Browser, Page
from potok.server.inspection.readers import readers_of, topic_roles
from potok.server.instants import instant_ms
from potok.server.ksql.json_rows import dump
from potok.server.problems import BAD, NOT_THERE
from potok.sql.catalog import Source

router = APIRouter(tags=["topics"])

_MOST = 1_000
_MOST_WHOLE = 10


@router.get("/topics", summary="List the topics")
async def topics(
    request: Request,
    sizes: bool = Query(False, description="With partitions, records, bytes and retention."),
    internal: bool = Query(False, description="Include topics whose names begin with _."),
) -> Response:
    caller, site = caller_of(request.scope), site_of(request)
    caller.require_some(READ)

    def work() -> Response:
        names = sorted(name for name in site.database.broker.topics() if internal or not name.startswith("_"))
        if not caller.may(READ):
            names = [name for name in names if caller.may(READ, *topic_names(site.database, name))]
        found: dict[str, Any] = {"topics": names}
        if sizes:
            roles = topic_roles(site.database)
            found["described"] = [
                {**summary(topic), "retention": _retention(topic), **roles.of(topic.name)}
                for topic in site.database.broker.describe_topics(names)
            ]
        return answer(found)

    return await site.work.answer(work)


@router.get("/topics/{name}", summary="Partitions, retention and readers of a topic", responses=NOT_THERE)
async def topic(request: Request, name: str) -> Response:
    """Return the offsets and the size of each partition, the configuration, the stream or table over the topic, and the
    queries and consumer groups that read it with their lag."""
    site = await _reading(request, name)

    def work() -> Response:
        broker = site.database.broker
        _check_exists(site, name)
        (found,) = broker.describe_topics([name])
        over = [
            {"name": source.name, "kind": source.kind.lower(), "value_format": source.value_format}
            for source in site.database.catalog.sources.values()
            if source.topic == name
        ]
        readers = readers_of(site.database, name)
        return answer(
            {**description(found), **topic_roles(site.database).of(name), "sources": over, "readers": readers}
        )

    return await site.work.answer(work)


@router.get("/topics/{name}/records", summary="Browse the records of a topic", responses=BAD | NOT_THERE)
async def records(
    request: Request,
    name: str,
    after: str | None = Query(None, description="Positions such as 0:12,1:7: the records from there on, oldest first."),
    before: str | None = Query(None, description="Positions: the last records before them."),
    at: str | None = Query(
        None, description="The records from this instant on: milliseconds since 1970, or an ISO time."
    ),
    key: str | None = Query(None, description="Only the records of this key, the latest; it continues with `before`."),
    partition: int | None = Query(None, ge=0, description="Only this partition."),
    limit: int = Query(100, ge=1, le=_MOST, description="Maximum number of records."),
    whole: bool = Query(False, description="Complete keys and values, also as base64; at most 10 records."),
) -> Response:
    """Return records, the oldest first, with decoded keys and values; without a position, the latest ones. `next` and
    `previous` are the positions to continue from with `after` and `before`. A time is found by the index of the log."""
    site, time_ms = await _reading(request, name), instant_ms(at)
    if whole and limit > _MOST_WHOLE:
        raise BadRequest(f"limit={limit} is too much for complete records", hint=f"set limit to {_MOST_WHOLE} or less")

    def work() -> Response:
        _check_exists(site, name)
        browser = Browser(site.database.broker, name, _source_over(site, name), whole=whole)
        if partition is not None and partition not in browser.ends:
            raise NotThere(f'topic "{name}" has no partition {partition}', hint=f"it has {len(browser.ends)}")
        parts = browser.ends if partition is None else {partition: browser.ends[partition]}
        if key is not None:
            data = key.encode()
            parts = {browser.partition_of(data): 0} if partition is None else parts
            ends = {part: browser.ends[part] for part in parts}
            return _answer(request, site, browser.of_key(data, _given(before, ends, browser), limit))
        if time_ms is not None:
            return _answer(request, site, browser.forwards(browser.at_time(time_ms, parts), limit))
        if after is not None:
            return _answer(request, site, browser.forwards(_given(after, parts, browser), limit))
        return _answer(request, site, browser.backwards(_given(before, parts, browser), limit))

    return await site.work.answer(work)


async def _reading(request: Request, name: str) -> Site:
    caller, site = caller_of(request.scope), site_of(request)
    if not caller.may(READ):
        caller.require_some(READ)
        caller.require(READ, *await site.work.answer(lambda: topic_names(site.database, name)))
    return site


def _answer(request: Request, site: Site, page: Page) -> Response:
    listed = AnswerSize(site.limits.answer_bytes, answer_of(request.scope)).array(map(dump, page.records))
    rest = {
        "next": format_positions(page.following),
        "previous": format_positions(page.preceding),
        "at_end": page.at_end,
        "searched": page.searched,
    }
    return Response(b'{"records":' + listed + b"," + dump(rest)[1:], media_type="application/json")


def _given(text: str | None, parts: dict[int, int], browser: Browser) -> dict[int, int]:
    """Return the positions of a request; those of partitions that it does not name are at the end."""
    if text is None:
        return dict(parts)
    found = parse_positions(text, browser.ends)
    return {part: found.get(part, at) for part, at in parts.items()}


def _check_exists(site: Site, name: str) -> None:
    if not site.database.broker.has_topic(name):
        raise NotThere(f'there is no topic "{name}"', hint="GET /topics lists them")


def _source_over(site: Site, topic: str) -> Source | None:
    return next((source for source in site.database.catalog.sources.values() if source.topic == topic), None)


def _retention(topic: TopicDescription) -> dict[str, Any]:
    config = topic.config
    return {
        "cleanup_policy": config.cleanup_policy,
        "retention_ms": config.retention_ms,
        "retention_bytes": config.retention_bytes,
        "archive": config.archive,
    }
