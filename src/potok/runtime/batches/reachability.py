"""Check that Spark's executors reach the log and the state of a query: on several machines, a local directory is not
enough.
"""

from __future__ import annotations

from potok.backends.state_url import FILE
from potok.errors import SetupError
from potok.log.broker import Broker
from potok.state.open import StateLocation
from potok.topology.execution_plan import Plan


class OutOfReach(SetupError):
    """A query on several machines whose log or state is in a directory of one."""

    def __init__(self, query: str, master: str, what: str, hint: str) -> None:
        super().__init__(
            f'query "{query}" cannot run on "{master}": its executors may run on other machines, but {what}',
            hint=f'{hint}; or run it on one machine: master="local[*,4]"',
        )


def on_one_machine(master: str) -> bool:
    """Whether driver and executors run on one machine and share its files. `local-cluster[...]`, for tests, counts as
    several machines, to show what would fail there.
    """
    return master == "local" or master.startswith("local[")


def check_reach(master: str, broker: Broker, plan: Plan, state: StateLocation) -> None:
    """Raise if the log or the state is a local directory, in which every executor would write its own tables."""
    if master.startswith("local"):
        return
    query = plan.topology.name
    if broker.url.startswith("file:"):
        raise OutOfReach(
            query, master, f"its log is in a directory of this machine: {broker.url}", 'use broker="kafka://host:9092"'
        )
    if plan.depth and state.where.kind == FILE:
        raise OutOfReach(
            query,
            master,
            f"its state is in a directory of this machine: {state.where}",
            'use state="s3://bucket/prefix", state="redis://host:6379/0", state="postgresql://user@host/database" '
            'or state="cassandra://user@host/keyspace"',
        )
