"""How Protobuf messages represent NULL."""

from __future__ import annotations

NULLS = ("optional", "wrapper", "default")
"""How a null scalar is written: by a field that is `optional`, by a wrapper message, or not at all, so that it is
read as the default of its type: 0, false, or empty."""
