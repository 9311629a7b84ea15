"""Instants in requests: milliseconds since 1970, or ISO times."""

from __future__ import annotations

from potok.clock import parse_epoch_ms
from potok.server.errors import BadRequest


def instant_ms(text: str | None) -> int | None:
    """Parse an optional instant of a request."""
    if text is None:
        return None
    try:
        return parse_epoch_ms(text)
    except ValueError as error:
        hint = "write milliseconds since 1970, or 2026-01-31T12:00:00Z"
        raise BadRequest(f'"{text}" is not a timestamp', hint=hint) from error
