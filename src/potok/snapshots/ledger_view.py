"""Read the ledger of a query."""

from __future__ import annotations

from potok.metadata.metadata_store import MetadataStore
from potok.state.entry import Entry, metadata_key_of


def read_entry(metadata: MetadataStore, query: str) -> Entry | None:
    """Return the ledger entry of the last committed batch; None for a query that never ran."""
    data = metadata.get_metadata(metadata_key_of(query, "ledger"))
    return None if data is None else Entry.of_bytes(data)
