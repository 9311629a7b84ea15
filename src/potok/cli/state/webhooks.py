"""`potok webhooks`: list the outcome of webhooks, send them again, enable endpoints."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from potok.cli.log.timestamps import parse_instant
from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import counted, note, print_json, print_table
from potok.cli.state.tables import QueryOption, chosen_query, show_instant
from potok.errors import QueryError

if TYPE_CHECKING:
    from potok.runtime.webhooks.journal import WebhookSelection

app = command_app(no_args_is_help=True, help="List the deliveries of webhooks, and send them again.")

Endpoint = Annotated[str | None, typer.Option(help="Only those to this endpoint.")]
Id = Annotated[str | None, typer.Option("--id", metavar="WEBHOOK_ID", help="Only the delivery with this webhook-id.")]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only those from this time on: yesterday, 2h ago, 2026-05-01.")
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only those before this time.")]
OUTCOMES = ("delivered", "retry", "failed", "disabled", "expired")


class NoSuchOutcome(QueryError):
    """The outcome does not exist; an empty list would be misleading."""


@app.command("list")
def list_webhooks(
    context: typer.Context,
    query: QueryOption = None,
    endpoint: Endpoint = None,
    outcome: Annotated[str | None, typer.Option(help=f"Only these: {', '.join(OUTCOMES)}.")] = None,
    identifier: Id = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number; the latest are shown.")] = 20,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """List the latest attempt of each delivery, the newest last."""
    from potok.runtime.webhooks.journal import WebhookJournal

    wanted = _selection(endpoint, identifier, outcome, since, until)
    with opened_log(context, broker) as log:
        name = chosen_query(log, query)
        found = WebhookJournal(log, name).latest(wanted)
    if as_json:
        for attempt in found[-limit:]:
            print_json(asdict(attempt))
        return
    if found:
        headings = ["ID", "ENDPOINT", "OUTCOME", "ATTEMPT", "STATUS", "AT", "ERROR"]
        rows = [
            [
                each.id,
                each.endpoint,
                each.outcome,
                each.attempt,
                each.status or "",
                show_instant(each.at),
                each.error or "",
            ]
            for each in found[-limit:]
        ]
        print_table(headings, rows)
    note(
        f'query "{name}": {counted(len(found), "delivery", "deliveries")}' + (" of this kind" if wanted.outcome else "")
    )


@app.command()
def endpoints(context: typer.Context, query: QueryOption = None, broker: Broker = None, as_json: Json = False) -> None:
    """List the endpoints of a query and their pending deliveries."""
    from potok.runtime.webhooks.journal import WebhookJournal

    with opened_log(context, broker) as log:
        found = WebhookJournal(log, chosen_query(log, query)).endpoints()
    if as_json:
        for each in found:
            print_json(asdict(each))
        return
    headings = ["STEP", "ENDPOINT", "STATE", "WAITING FOR A RETRY", "NOT READ YET"]
    rows = [[e.step, e.endpoint, "disabled" if e.disabled else "enabled", e.waiting, e.unread] for e in found]
    print_table(headings, rows)


@app.command()
def redrive(
    context: typer.Context,
    query: QueryOption = None,
    endpoint: Endpoint = None,
    outcome: Annotated[
        str | None, typer.Option(help="Only deliveries whose last attempt had this outcome.")
    ] = "failed",
    identifier: Id = None,
    since: Since = None,
    until: Until = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All deliveries of records in the time range, including successful ones.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done without doing it.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Send deliveries again, with the same webhook-id: by default those that have failed.

    If the query does not run, they are sent after its next start.
    """
    from potok.runtime.webhooks.journal import WebhookJournal

    wanted = _selection(endpoint, identifier, None if everything or identifier else outcome, since, until)
    with opened_log(context, broker) as log:
        name = chosen_query(log, query)
        journal = WebhookJournal(log, name)
        number = (journal.replay if everything else journal.redrive)(wanted, dry_run=dry_run)
    if as_json:
        print_json({"query": name, "done": not dry_run, "deliveries": number})
    else:
        verb = "would be sent" if dry_run else "will be sent"
        note(f'query "{name}": {counted(number, "delivery", "deliveries")} {verb} again')


@app.command()
def enable(
    context: typer.Context,
    endpoint: Annotated[str, typer.Argument(help="The name of the endpoint.")],
    query: QueryOption = None,
    broker: Broker = None,
) -> None:
    """Enable an endpoint that responded with 410 Gone, and send what has been waiting for it."""
    from potok.runtime.webhooks.journal import WebhookJournal

    with opened_log(context, broker) as log:
        name = chosen_query(log, query)
        WebhookJournal(log, name).enable(endpoint)
    note(f'query "{name}": endpoint "{endpoint}" is enabled')


def _selection(
    endpoint: str | None, identifier: str | None, outcome: str | None, since: str | None, until: str | None
) -> WebhookSelection:
    from potok.runtime.webhooks.journal import WebhookSelection
    from potok.runtime.webhooks.records import Outcome

    if outcome is not None and outcome not in OUTCOMES:
        raise NoSuchOutcome(f'there is no outcome "{outcome}"', hint=f"use one of: {', '.join(OUTCOMES)}")
    since_ms, until_ms = (None if text is None else parse_instant(text) for text in (since, until))
    return WebhookSelection(endpoint, identifier, None if outcome is None else Outcome(outcome), since_ms, until_ms)
