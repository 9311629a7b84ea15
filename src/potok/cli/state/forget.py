"""`potok forget`: delete the key of a person's data."""

from __future__ import annotations

from typing import Annotated

import typer

from potok.cli.options import Broker, Json, command_app, opened_log, settings_of
from potok.cli.output import note, print_json

app = command_app()


@app.command()
def forget(
    context: typer.Context,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="The subject, as events name it: user_001.")],
    keys: Annotated[
        str | None, typer.Option("--keys", metavar="URL", help="The key store (POTOK_PERSONAL_KEYS).")
    ] = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Delete the key of a subject, and append SubjectForgotten to the topics with their events.

    Their personal data can no longer be read from any copy of these topics. Plain text that a program has copied into
    a table or to another topic is not deleted: the program has to handle SubjectForgotten. If the command is
    interrupted, run it again.
    """
    from potok.errors import SetupError
    from potok.events.personal.key_store import open_key_store
    from potok.runtime.operations.forget_subject import forget_subject

    url = settings_of(context, broker, personal_keys=keys).personal_keys
    if not url:
        hint = "set personal_keys in potok.toml, or pass --keys"
        raise SetupError("the location of the key store is not known", hint=hint)
    with opened_log(context, broker) as log:
        topics = forget_subject(log, open_key_store(url), subject)
    if as_json:
        print_json({"subject": subject, "topics": topics})
        return
    announced = f"; appended SubjectForgotten to {', '.join(topics)}" if topics else "; its topics already contain it"
    note(f'the key of "{subject}" is deleted{announced}')
