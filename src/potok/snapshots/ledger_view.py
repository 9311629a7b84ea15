"""Reading the ledger of a query."""

from __future__ import annotations

from potok.metadata.metadata_store import MetadataStore
from potok.state.entry import Entry, mark_of


def read_entry(metadata: MetadataStore, query: str) -> Entry | None:
    """What the last committed batch left behind; nothing for a query that never ran."""
    data = metadata.get_metadata(mark_of(query, "ledger"))
    return None if data is None else Entry.of_bytes(data)
