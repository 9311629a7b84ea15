"""Record the checksums of a compact copy of a data file, whose content the caller has verified."""

from __future__ import annotations

from pathlib import Path

from potok.checksum import crc32
from potok.storage.checked_file import stamp_of
from potok.storage.checksum_journal import Journal, PageSums
from potok.storage.page_format import META_PAGES, PageDamage, PageFile

_AT_ONCE = 1_024


def seal_compact_copy(directory: Path) -> None:
    """Write the journal next to a compact copy, in which every page is in use, instead of inspecting its trees."""
    file, journal = PageFile(directory), Journal(directory)
    try:
        metas, newest = file.metas(), file.newest()
        if newest.last_page + 1 != max(file.pages(), META_PAGES):
            raise PageDamage(f"it has {file.pages()} pages, but its meta page says {newest.last_page + 1}")
        sums: dict[int, int] = {}
        for first in range(META_PAGES, newest.last_page + 1, _AT_ONCE):
            count = min(_AT_ONCE, newest.last_page + 1 - first)
            view, size = memoryview(file.run(first, count)), file.page_size
            sums.update((first + row, crc32(view[row * size : (row + 1) * size])) for row in range(count))
        found = PageSums()
        found.reset(dict(sorted(sums.items())), metas, stamp_of(file))
        journal.rewrite(found)
    finally:
        journal.close()
        file.close()
