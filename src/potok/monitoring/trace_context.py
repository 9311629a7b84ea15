"""The header of W3C Trace Context, in HTTP requests and in records."""

from __future__ import annotations

import re

TRACEPARENT = "traceparent"

_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def trace_header(text: str | None) -> tuple[tuple[str, bytes], ...]:
    """Return the header of a record for that of a request; nothing if it is missing or invalid."""
    if text is None or len(text) > 200 or _FORM.fullmatch(text) is None:
        return ()
    return ((TRACEPARENT, text.encode("ascii", "replace")),)
