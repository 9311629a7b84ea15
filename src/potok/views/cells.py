"""Under which name the cells of a query are kept: its own, unless a shadow has taken its place."""

from __future__ import annotations

from potok.connectors.books import MetadataStore
from potok.state.entry import mark_of


def cells_mark(query: str) -> str:
    return mark_of(query, "cells")


def cells_of(metadata: MetadataStore, query: str) -> str:
    found = metadata.mark(cells_mark(query))
    return query if found is None else found.decode()
