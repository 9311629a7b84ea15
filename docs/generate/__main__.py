"""Write all generated pages: `python -m docs.generate`."""

from __future__ import annotations

from docs.generate.pages import DOCS, PAGES

for path, generate in PAGES.items():
    target = DOCS / path
    target.parent.mkdir(exist_ok=True)
    target.write_text(generate())
    print(f"docs/{path}")
