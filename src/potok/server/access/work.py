"""Execute the statements of requests in threads, with permissions, timeouts and size limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect

from potok.monitoring.families import PULL_SECONDS
from potok.monitoring.histogram import Histogram
from potok.server.access.disconnects import current_stop
from potok.server.access.limits import Limits
from potok.server.errors import BadRequest, OutOfMemory, TooLong, TooManyRows
from potok.sql.budget import NobodyWaits, TimeIsOver, check_time, until
from potok.sql.errors import Refused
from potok.sql.properties import canonical
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from potok.statements.database import Database
from potok.statements.prepared import MOST_STATEMENTS, Recent, weight_of
from potok.statements.results import Result, Rows
from potok.statements.session import CHANGES, SqlSession

T = TypeVar("T")


MOST_NAMES = 1_000
"""Variables, and properties, of one request."""

WAITS = (ast.AssertTopic,)
"""Statements that only wait."""


class Work:
    """Execute statements for many clients concurrently."""

    def __init__(self, database: Database, limits: Limits) -> None:
        self.database, self.limits = database, limits
        self.seconds = Histogram(PULL_SECONDS.buckets)
        """The durations of pull queries."""
        self._answers = ThreadPoolExecutor(limits.workers, "potok-answer")
        # Creating a query may wait for Spark to start; reads must not queue behind it.
        self._changes = ThreadPoolExecutor(2, "potok-change")
        self._waits = ThreadPoolExecutor(limits.workers, "potok-wait")
        self._looks = ThreadPoolExecutor(1, "potok-look")
        self._scripts: Recent[tuple[ast.Parsed, ...]] = Recent(MOST_STATEMENTS)

    async def answer(self, work: Callable[[], T]) -> T:
        """Run short work in a thread."""
        return await self._in_time(self._answers, work)

    async def carry_out(self, script: Sequence[ast.Parsed], work: Callable[[], T]) -> T:
        """Run the statements of a script in a pool where they delay no reads."""
        waiting = any(isinstance(parsed.statement, WAITS) for parsed in script)
        if not changes(script):
            return await self._in_time(self._waits if waiting else self._answers, work)
        if waiting:
            return await asyncio.get_running_loop().run_in_executor(self._waits, lambda: _surviving(work))
        return await self.change(work)

    async def look(self, work: Callable[[], T]) -> T:
        """Run health checks in their own thread, ahead of queries."""
        return await self._in_time(self._looks, work)

    async def _in_time(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        end, stop = time.monotonic() + self.limits.seconds, current_stop()
        try:
            # Work that has not started by then is cancelled. Work that has started sees that its time is over, or that
            # its client has disconnected.
            async with asyncio.timeout(self.limits.seconds):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(pool, lambda: until(end, lambda: _surviving(work), stop))
        except NobodyWaits:
            raise ClientDisconnect from None
        except (TimeoutError, TimeIsOver):
            raise TooLong(self.limits.seconds) from None

    async def change(self, work: Callable[[], T]) -> T:
        """Run work without a time limit in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._changes, lambda: _surviving(work))

    def session(self, variables: Mapping[str, Any] | None = None) -> SqlSession:
        """Return a session; SET and DEFINE apply to one request."""
        session = SqlSession(self.database)
        session.variables |= {str(name): str(value) for name, value in (variables or {}).items()}
        return session

    async def script(self, text: str, variables: Mapping[str, Any] | None = None) -> tuple[ast.Parsed, ...]:
        """Return the statements of a text, parsed in a thread unless they are cached. The same text gives the same
        objects, so that their plans are found again."""
        if len(variables or {}) > MOST_NAMES:
            raise BadRequest(f"there are more than {MOST_NAMES:,} variables", hint="send only those that the text uses")
        if any(isinstance(value, list | dict) for value in (variables or {}).values()):
            raise BadRequest("a variable must be a string or a number", hint='write {"name": "value"}')
        given = (variables or {}) if "${" in text else {}
        key = text, tuple(sorted((str(name), str(value)) for name, value in given.items()))
        found = self._scripts.get(key)
        if found is not None:
            return found
        return self._scripts.keep(key, await self.answer(lambda: self._read_script(*key)), weight_of(*key))

    async def query(self, text: str, variables: Mapping[str, Any] | None = None) -> ast.Parsed:
        """Parse a single SELECT or PRINT; the `;` is optional."""
        script = await self.script(text if text.rstrip().endswith(";") else f"{text};", variables)
        if len(script) != 1:
            raise BadRequest(f"expected one statement, found {len(script)}", hint="send several to /ksql or /sql")
        if not isinstance(script[0].statement, ast.Query | ast.Print):
            hint = "send it to /ksql; this path accepts SELECT and PRINT"
            raise Refused("the statement is not a query", hint=hint, location=script[0].at)
        return script[0]

    def _read_script(self, text: str, variables: tuple[tuple[str, str], ...]) -> tuple[ast.Parsed, ...]:
        return tuple(self._bounded(parsed) for parsed in parse_script(text, dict(variables), bounded=True))

    def _bounded(self, parsed: ast.Parsed) -> ast.Parsed:
        """Limit a finite query to one row more than allowed, to detect that there are too many."""
        statement, most = parsed.statement, self.limits.rows
        if not isinstance(statement, ast.Query) or statement.query.emit is not None:
            return parsed
        if statement.query.limit is not None and statement.query.limit <= most:
            return parsed
        bounded = replace(statement, query=replace(statement.query, limit=most + 1))
        return replace(parsed, statement=bounded)

    def run(self, session: SqlSession, parsed: ast.Parsed, properties: Mapping[str, str]) -> Result:
        """Execute one statement in the thread of the caller. The time limit applies to statements that wait, too."""
        check_time()
        given = {**session.properties, **properties}
        if isinstance(parsed.statement, WAITS):
            return until(time.monotonic() + self.limits.seconds, lambda: session.run(parsed, given))
        began = time.monotonic()
        result = session.run(parsed, given)
        if isinstance(result, Rows) and result.kind == "query":
            self.seconds.observe(time.monotonic() - began)
        if isinstance(result, Rows) and result.kind == "query" and len(result.rows) > self.limits.rows:
            raise TooManyRows(self.limits.rows)
        return result

    def close(self) -> None:
        self._answers.shutdown(wait=False, cancel_futures=True)
        self._waits.shutdown(wait=False, cancel_futures=True)
        self._changes.shutdown(wait=False, cancel_futures=True)
        self._looks.shutdown(wait=False, cancel_futures=True)


def _surviving(work: Callable[[], T]) -> T:
    try:
        return work()
    except MemoryError as error:
        raise OutOfMemory from error


def changes(script: Sequence[ast.Parsed]) -> bool:
    return any(isinstance(parsed.statement, CHANGES) for parsed in script)


def properties_of(given: Any) -> dict[str, str]:
    """Return the properties of a request as text."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BadRequest("properties must be an object", hint='write {"auto.offset.reset": "earliest"}')
    if len(given) > MOST_NAMES:
        raise BadRequest(
            f"there are more than {MOST_NAMES:,} properties", hint="send only those that the statements need"
        )
    texts: dict[str, str] = {}
    for name, value in given.items():
        if isinstance(value, list | dict):
            raise BadRequest(
                f'the property "{name[:200]}" is neither a string nor a number', hint="write it as a string"
            )
        text = str(value).lower() if isinstance(value, bool) else str(value)
        texts[canonical(str(name))] = text
    return texts
