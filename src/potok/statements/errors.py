"""Errors of the catalog and its queries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from potok.errors import QueryError
from potok.sql.errors import Refused, SourceLocation, similar
from potok.sql.types import quoted
from potok.statements.messages import FEW


class CatalogChanged(QueryError):
    """Another process changed the catalog between a read and a write."""

    def __init__(self) -> None:
        super().__init__("the catalog was changed by another process", hint="send the statement again")


class NotYetRemoved(QueryError):
    """The previous query or topic of a name has not been removed yet."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            f"the process that runs the queries has not yet removed the old topic or query of {', '.join(names)}",
            hint="send the statement again in a moment; the log of that process says what prevents it",
        )


class ServedElsewhere(QueryError):
    """A second process would run the queries of the same catalog."""

    def __init__(self, location: str) -> None:
        super().__init__(
            f"another process already runs the queries of {location}",
            hint="use that one: potok sql --server URL; or stop it first, or name another log with --broker",
        )


class TopicGone(QueryError):
    """A topic that a query reads was deleted. Creating an empty one instead would hide that."""

    def __init__(self, query_id: str, topic: str, statement: str) -> None:
        super().__init__(
            f'the topic "{topic}" that query {query_id} reads no longer exists',
            hint=f"{statement}; and create it again over an existing topic",
        )


class NotRunningHere(QueryError):
    """The operation needs a running query, and this process runs none."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} needs running queries, and this process runs none",
            hint="send it to a server: potok serve, then potok sql --server http://localhost:8088",
        )


class UnknownQuery(Refused):
    """A query id that does not exist.

    Args:
        left: The stream or table of this query, if the query was terminated.
    """

    def __init__(self, query_id: str, known: Sequence[str], location: SourceLocation | None, *, left: str = "") -> None:
        if left:
            hint = f"it was terminated; CREATE OR REPLACE {quoted(left)} resumes it"
        elif near := _near(query_id, known):
            hint = f"did you mean {near}?"
        else:
            more = f" and {len(known) - FEW} more: SHOW QUERIES" if len(known) > FEW else ""
            hint = f"the queries are {', '.join(known[:FEW])}{more}" if known else "there are no queries"
        super().__init__(f"there is no query {quoted(query_id)}", hint=hint, location=location)


_OF_SOURCE = re.compile(r"(?:CSAS|CTAS|CST)_(.+?)(?:_[0-9]+)?")


def _near(query_id: str, known: Iterable[str]) -> str:
    """Return a similar id, if there is one. Ids differ mostly in the name of their sink, so that is compared; ids of
    INSERT have none."""
    by_name = {_name_in(other): other for other in known if not other.startswith("INSERTQUERY_")}
    near = similar(_name_in(query_id), by_name, 0.8)
    return by_name[near] if near else ""


def _name_in(query_id: str) -> str:
    found = _OF_SOURCE.fullmatch(query_id)
    return found[1] if found else query_id


class CannotCompare(QueryError):
    """The program on disk cannot be loaded, or loading it takes too long."""

    def __init__(self, program: str, why: str) -> None:
        super().__init__(f'"{program}" cannot be compared: {why}', hint=f"run potok diff {program}")
