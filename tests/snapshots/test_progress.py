from __future__ import annotations

from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.snapshots.progress import read_description, read_progress
from potok.snapshots.rows.layout import load_layouts
from potok.state.entry import MetadataUnreadable, metadata_key_of

DAMAGED = [b"", b"{", b"\xff", b"null", b"3", b"[1]", b"[" * 100_000]


@pytest.mark.parametrize("data", [*DAMAGED, b"{}", b'{"query": "q", "of a newer version": 1}'])
def test_progress_in_another_format_is_an_error_that_names_the_query(tmp_path: Path, data: bytes) -> None:
    broker = EmbeddedBroker(tmp_path)
    broker.set_metadata({metadata_key_of("q", "progress"): data})
    with pytest.raises(MetadataUnreadable, match='the progress of query "q" cannot be read'):
        read_progress(broker, "q")
    broker.close()


@pytest.mark.parametrize("data", DAMAGED)
def test_a_description_in_another_format_is_an_error_that_names_the_query(tmp_path: Path, data: bytes) -> None:
    broker = EmbeddedBroker(tmp_path)
    broker.set_metadata({metadata_key_of("q", "description"): data})
    with pytest.raises(MetadataUnreadable, match='the description of query "q" cannot be read'):
        read_description(broker, "q")
    broker.close()


@pytest.mark.parametrize("data", [*DAMAGED, b'{"t": {}}', b'{"t": 1}'])
def test_layouts_in_another_format_are_an_error(data: bytes) -> None:
    with pytest.raises(MetadataUnreadable, match="the layout of the tables of a query cannot be read"):
        load_layouts(data)
