"""What can go wrong with a catalogue and its queries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from potok.errors import QueryError
from potok.sql.errors import Place, Refused, similar
from potok.sql.types import quoted
from potok.statements.messages import FEW


class CatalogueMoved(QueryError):
    """Somebody else has changed the catalogue between a look and a change."""

    def __init__(self) -> None:
        super().__init__("the catalogue was changed by somebody else", hint="send the statement again")


class StillThere(QueryError):
    """A name whose query or topic is not removed yet."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            f"what was left of {', '.join(names)} is still to be removed by the process that runs the queries",
            hint="send the statement again in a moment; the log of that process says what is in the way",
        )


class ServedElsewhere(QueryError):
    """A second process that would run the queries of one catalogue."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"another process runs the queries of {place} already",
            hint="use that one: potok sql --server URL; or stop it first, or name another log with --broker",
        )


class TopicGone(QueryError):
    """A topic that a query reads was deleted. To make an empty one in its place would hide that."""

    def __init__(self, query_id: str, topic: str, statement: str) -> None:
        super().__init__(
            f'the topic "{topic}" that query {query_id} reads is not there any more',
            hint=f"{statement}; and create it again over a topic that is there",
        )


class NotRunningHere(QueryError):
    """A query is asked for where none are run."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} needs queries to run, and none run here",
            hint="send it to a server: potok serve, then potok sql --server http://localhost:8088",
        )


class UnknownQuery(Refused):
    """A query id that nobody has.

    Args:
        left: The stream or table that a query of this id has left, if it was terminated.
    """

    def __init__(self, query_id: str, known: Sequence[str], place: Place | None, *, left: str = "") -> None:
        if left:
            hint = f"it was terminated; CREATE OR REPLACE of {quoted(left)} lets it go on"
        elif near := _near(query_id, known):
            hint = f"did you mean {near}?"
        else:
            more = f" and {len(known) - FEW} more: SHOW QUERIES" if len(known) > FEW else ""
            hint = f"there are: {', '.join(known[:FEW])}{more}" if known else "no query runs: SHOW QUERIES"
        super().__init__(f"there is no query {quoted(query_id)}", hint=hint, place=place)


_OF_SOURCE = re.compile(r"(?:CSAS|CTAS|CST)_(.+?)(?:_[0-9]+)?")


def _near(query_id: str, known: Iterable[str]) -> str:
    """The id that is meant, if one is near. Ids are alike in all but the name of what they write, so that is compared;
    those of INSERT have none."""
    by_name = {_name_in(other): other for other in known if not other.startswith("INSERTQUERY_")}
    near = similar(_name_in(query_id), by_name, 0.8)
    return by_name[near] if near else ""


def _name_in(query_id: str) -> str:
    found = _OF_SOURCE.fullmatch(query_id)
    return found[1] if found else query_id
