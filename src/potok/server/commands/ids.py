"""The id of a sent command: it says where its result will be, so that finding it needs no index."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import orjson

from potok.patterns.aggregates.client import Sent
from potok.server.errors import NotThere

LONGEST = 4_096


def id_of(sent: Sent) -> str:
    parts = [sent.aggregate, sent.aggregate_id, sent.command_id, sent.partition, sent.offset]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def sent_of(text: str) -> Sent:
    """Return the command of an id; raise `NotThere` for any other text."""
    try:
        if len(text) > LONGEST:
            raise ValueError
        padded = text + "=" * (-len(text) % 4)
        parts = orjson.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        if not isinstance(parts, list) or list(map(type, parts)) != [str, str, str, int, int]:
            raise ValueError
        if parts[3] < 0 or not 0 <= parts[4] < 1 << 62:
            raise ValueError
    except (binascii.Error, ValueError) as error:
        raise unknown(text) from error
    return Sent(*parts)


def unknown(text: str) -> NotThere:
    return NotThere(f'there is no command "{text:.100}"', hint="use the id of a response of POST /commands unchanged")


def rendered(sent: Sent) -> dict[str, Any]:
    return {
        "id": id_of(sent),
        "command_id": sent.command_id,
        "aggregate": sent.aggregate,
        "aggregate_id": sent.aggregate_id,
    }
