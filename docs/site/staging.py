"""Collect the pages in one directory, with links that are valid there."""

from __future__ import annotations

import os
import re
import shutil
from itertools import zip_longest
from pathlib import Path, PurePosixPath

from docs.site.navigation import FROM_THE_ROOT, ROOT, pages, source_of

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:|#|//")
HTML_LINK = re.compile(r'(href="[\w/.-]+)\.md(#[^"]*)?"')
"""A link in HTML, which the builder leaves as it is."""
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


def stage(directory: Path) -> dict[str, str]:
    """Write all pages, and the files that they link to, below a directory; return the text of each page."""
    found = {page: _relocated(page, directory) for page in pages()}
    for page, text in found.items():
        path = directory / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for picture in sorted([*(ROOT / "docs").glob("*.svg"), *(ROOT / "docs").glob("*.png")]):
        shutil.copy(picture, directory / picture.name)
    return found


def _relocated(page: str, directory: Path) -> str:
    source = source_of(page)
    here = PurePosixPath(page).parent

    def rewrite(link: re.Match[str]) -> str:
        if EXTERNAL.match(link[2]):
            return link[0]
        path, hash_, anchor = link[2].partition("#")
        target = Path(os.path.normpath(source.parent / path))
        return f"{link[1]}{os.path.relpath(_place(target, directory), here)}{hash_}{anchor}{link[3]}"

    parts = CODE.split((ROOT / source).read_text())
    prose = (HTML_LINK.sub(r'\1.html\2"', LINK.sub(rewrite, part)) for part in parts[::2])
    return "".join(part for pair in zip_longest(prose, parts[1::2], fillvalue="") for part in pair)


def _place(target: Path, directory: Path) -> PurePosixPath:
    """Return where a file of the repository is on the site; a file that is not a page is copied."""
    name = target.as_posix()
    if name in FROM_THE_ROOT:
        return PurePosixPath(FROM_THE_ROOT[name])
    if target.parts[0] == "docs":
        return PurePosixPath(*target.parts[1:])
    if name == "README.md":
        return PurePosixPath("index.md")
    copy = PurePosixPath("files", name)
    (directory / copy).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / target, directory / copy)
    return copy
