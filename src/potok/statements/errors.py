"""What can go wrong with a catalogue and its queries."""

from __future__ import annotations

from potok.errors import QueryError
from potok.sql.errors import Place, Refused
from potok.sql.types import quoted


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


class NotRunningHere(QueryError):
    """A query is asked for where none are run."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} needs queries to run, and none run here",
            hint="send it to a server: potok serve, then potok sql --server http://localhost:8088",
        )


class UnknownQuery(Refused):
    """A query id that nobody has."""

    def __init__(self, query_id: str, known: list[str], hint: str, place: Place | None) -> None:
        there = hint or (f"there are {', '.join(known)}" if known else "no query runs: SHOW QUERIES")
        super().__init__(f"there is no query {quoted(query_id)}", hint=there, place=place)
