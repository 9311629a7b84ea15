"""The id of a sent command: it says where its result will be, so that finding it needs no index."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec
import orjson

from potok.patterns.aggregates.client import Sent
from potok.server.errors import NotThere

LONGEST = 4_096


class _Parts(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    aggregate: str
    aggregate_id: str
    command_id: str
    partition: int
    offset: int


def id_of(sent: Sent) -> str:
    parts = [sent.aggregate, sent.aggregate_id, sent.command_id, sent.partition, sent.offset]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def sent_of(text: str) -> Sent:
    """Return the command of an id; raise `NotThere` for any other text."""
    try:
        if len(text) > LONGEST:
            raise ValueError
        padded = text + "=" * (-len(text) % 4)
        data = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
        found = msgspec.json.decode(data, type=_Parts)
        if found.partition < 0 or not 0 <= found.offset < 1 << 62:
            raise ValueError
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise unknown(text) from error
    return Sent(found.aggregate, found.aggregate_id, found.command_id, found.partition, found.offset)


def unknown(text: str) -> NotThere:
    return NotThere(f'there is no command "{text:.100}"', hint="use the id of a response of POST /commands unchanged")


def shown(sent: Sent) -> dict[str, Any]:
    return {
        "id": id_of(sent),
        "command_id": sent.command_id,
        "aggregate": sent.aggregate,
        "aggregate_id": sent.aggregate_id,
    }
