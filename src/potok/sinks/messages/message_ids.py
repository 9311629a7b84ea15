"""Ids by which consumers recognise a message that arrives again."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence

from potok.sinks.sink_spec import Batch, Opening


def message_ids(opening: Opening, batch: Batch, bodies: Sequence[bytes]) -> list[str]:
    """Return an id for each message: a repeated batch derives the same ones.

    They include the bodies, because a repeated batch may have other records if the program was changed.
    """
    sender = hashlib.blake2b(f"{opening.query}\0{opening.step}".encode(), digest_size=8).hexdigest()
    return [f"{sender}-{batch.number}-{row}-{zlib.crc32(body):08x}" for row, body in enumerate(bodies)]
