"""Build the site into a directory: `python -m docs.site [DIRECTORY]`."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.site.build import build

target = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
pages = build(target)
print(f"{pages} pages: open {target / 'index.html'}")
