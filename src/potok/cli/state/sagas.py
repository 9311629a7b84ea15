"""`potok sagas`: list, show and control instances."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import console, note, print_json, print_table
from potok.cli.state.tables import QueryOption, chosen_query, report_freshness

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.snapshots.patterns.saga_instances import SagaInstances, SagaOf

app = command_app(no_args_is_help=True, help="List the instances of sagas, and retry, skip or abort them.")

SagaName = Annotated[str, typer.Argument(help="The saga.", show_default=False)]
Key = Annotated[str, typer.Argument(help="The key of the instance.", show_default=False)]


@app.command("list")
def list_instances(
    context: typer.Context,
    saga: Annotated[str | None, typer.Argument(help="Only this saga.", show_default=False)] = None,
    state: Annotated[
        str | None, typer.Option(help="Only this state: running, aborting, stuck, completed or aborted.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of instances.")] = 100,
    query: QueryOption = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """List instances, those that wait for operators first."""
    from potok.snapshots.patterns.saga_instances import SagaInstances, merged, saga_named

    with opened_log(context, broker) as log:
        known = _sagas(log, query)
        chosen = known if saga is None else [saga_named(known, saga)]
        rows = merged([SagaInstances(log, one).listed(state, limit + 1) for one in chosen], limit + 1)
        for name in dict.fromkeys(one.query for one in chosen):
            report_freshness(log, name)
    if as_json:
        for row in rows[:limit]:
            print_json(row)
        return
    if not rows:
        note("no instances" if chosen else "no program has a saga: builder.saga(Checkout, events=...)")
        return
    headings = ("saga", "id", "state", "steps", "next timer", "changed", "reason")
    print_table(headings, [_listed(row) for row in rows[:limit]])
    if len(rows) > limit:
        note(f"there are more instances; use --limit {limit * 10}, or --state")


@app.command()
def show(
    context: typer.Context,
    saga: SagaName,
    key: Key,
    query: QueryOption = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Show an instance: its state, data, steps, next timer, and history with the ids of its events."""
    with opened_log(context, broker) as log:
        instances = _opened(log, saga, query)
        found = instances.get(key)
        report_freshness(log, instances.saga.query)
    if as_json:
        print_json(found)
        return
    screen = console()
    reason = f": {found['reason']}" if found["reason"] else ""
    screen.print(f"{saga} {found['id']}: {found['state']}{reason}", markup=False, highlight=False)
    screen.print(f"version {found['version']}, data {json.dumps(found['data'], default=str)}", markup=False)
    following = found["next_timer"]
    if following is not None:
        screen.print(f"next timer: {following['name']} at {_at(following['at'])}", markup=False)
    if found["steps"]:
        steps = [(name, one["state"], one["attempt"]) for name, one in found["steps"].items()]
        print_table(("step", "state", "attempt"), steps)
    print_table(("at", "what", "step", "message", "event id"), [_entry(one) for one in found["history"]])


@app.command()
def retry(context: typer.Context, saga: SagaName, key: Key, query: QueryOption = None, broker: Broker = None) -> None:
    """Repeat the step at which an instance is stuck."""
    _control(context, saga, key, "retry", query, broker)


@app.command()
def skip(context: typer.Context, saga: SagaName, key: Key, query: QueryOption = None, broker: Broker = None) -> None:
    """Skip the step at which an instance is stuck."""
    _control(context, saga, key, "skip", query, broker)


@app.command()
def abort(context: typer.Context, saga: SagaName, key: Key, query: QueryOption = None, broker: Broker = None) -> None:
    """Compensate a running instance. The second time, give up the compensations that are still pending."""
    _control(context, saga, key, "abort", query, broker)


def _control(context: typer.Context, saga: str, key: str, action: str, query: str | None, broker: str | None) -> None:
    with opened_log(context, broker) as log:
        instances = _opened(log, saga, query)
        before = instances.control(key, action)
        report_freshness(log, instances.saga.query)
    note(f"{saga} {before['id']} was {before['state']}; {action} takes effect with the next batch of its query")


def _opened(log: Log, saga: str, query: str | None) -> SagaInstances:
    from potok.snapshots.patterns.saga_instances import SagaInstances, saga_named

    return SagaInstances(log, saga_named(_sagas(log, query), saga))


def _sagas(log: Log, query: str | None) -> list[SagaOf]:
    from potok.snapshots.patterns.saga_instances import sagas_of
    from potok.snapshots.tables import known_queries

    return sagas_of(log, [chosen_query(log, query)] if query else known_queries(log))


def _listed(row: dict[str, Any]) -> tuple[object, ...]:
    timer = "" if row["next_timer"] is None else _at(row["next_timer"])
    steps = ", ".join(row["steps"])
    return row["saga"], row["id"], row["state"], steps, timer, _at(row["changed_at"]), row["reason"] or ""


def _entry(entry: dict[str, Any]) -> tuple[object, ...]:
    message = next((entry[name] for name in ("command", "emitted", "timer", "reason") if name in entry), "")
    return _at(entry["at"]), entry["what"], entry.get("step", ""), message, entry.get("event_id", "")


def _at(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "")
