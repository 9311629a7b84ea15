"""Parse timestamps as users type them: now, yesterday, 2h ago, a date, a time, milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from potok.clock import epoch_ms, now_ms
from potok.duration import to_ms
from potok.errors import PotokError

MEANT = 'write now, today, yesterday, "2 hours ago", 2026-05-01, 2026-05-01T12:30 (UTC), or milliseconds since 1970'


class UnknownInstant(PotokError):
    """The text is not a timestamp."""

    def __init__(self, text: str) -> None:
        super().__init__(f'"{text}" is not a timestamp', hint=MEANT)


def parse_instant(text: str, now: int | None = None) -> int:
    """Return milliseconds since 1970; days begin at midnight UTC."""
    now = now_ms() if now is None else now
    word = text.strip().lower()
    if word == "now":
        return now
    if word in ("today", "yesterday"):
        midnight = datetime.fromtimestamp(now / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return epoch_ms(midnight - timedelta(days=word == "yesterday"))
    if word.lstrip("-").isdigit() and len(word) > len("20260501"):
        return int(word)
    try:
        if word.endswith(" ago") or (word[-1:].isalpha() and not word.endswith("z")):
            return now - to_ms(word.removesuffix(" ago"))
        return epoch_ms(datetime.fromisoformat(text.strip()))
    except (ValueError, PotokError) as error:
        raise UnknownInstant(text) from error
