"""Build the site: pages in HTML, a Markdown twin of each, and `llms.txt`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from docs.site.navigation import SECTIONS, summary_of, title_of
from docs.site.staging import stage

DESCRIPTION = "Kafka Streams, ksqlDB and Faust in one Python package, executed by Spark"
HERE = Path(__file__).parent
SHIM = re.compile(r"https://unpkg\.com/iframe-worker/shim")
"""What Zensical loads in pages that are opened as files."""


class BuildError(RuntimeError):
    """The site cannot be built."""


def build(target: Path) -> int:
    """Build the site into a directory, whose content is replaced; return the number of pages."""
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary)
        texts = stage(project / "docs")
        for name in ("style.css", "frame_worker.js"):
            shutil.copy(HERE / name, project / "docs" / name)
        # JSON is YAML.
        (project / "mkdocs.yml").write_text(json.dumps(_configuration(texts), indent=2))
        command = [sys.executable, "-m", "zensical", "build", "--clean"]
        run = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        if run.returncode or not (project / "site" / "index.html").is_file():
            raise BuildError(f"zensical failed:\n{run.stdout}{run.stderr}")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(project / "site", target)
    for path in target.rglob("*.html"):
        script = os.path.relpath(target / "frame_worker.js", path.parent)
        path.write_text(SHIM.sub(script, path.read_text()))
    for page, text in texts.items():
        (target / page).write_text(text)
    (target / "llms.txt").write_text(_index(texts))
    (target / "llms-full.txt").write_text("\n\n".join(texts.values()))
    return len(texts)


def _configuration(texts: dict[str, str]) -> dict[str, Any]:
    sections = [{name: [{title_of(texts[page]): page} for page in listed]} for name, listed in SECTIONS.items()]
    scheme = "(prefers-color-scheme: {})"
    return {
        "site_name": "Potok",
        "site_description": DESCRIPTION,
        "use_directory_urls": False,
        "nav": [{"Potok": "index.md"}, *sections],
        "theme": {
            "name": "material",
            # Fonts of the system: nothing is loaded from another site.
            "font": False,
            "features": [
                "navigation.tabs",
                "navigation.top",
                "navigation.footer",
                "navigation.indexes",
                "toc.follow",
                "search.highlight",
                "content.code.copy",
            ],
            "palette": [
                {
                    "media": scheme.format("light"),
                    "scheme": "default",
                    "primary": "indigo",
                    "toggle": {"icon": "lucide/sun", "name": "Dark mode"},
                },
                {
                    "media": scheme.format("dark"),
                    "scheme": "slate",
                    "primary": "indigo",
                    "toggle": {"icon": "lucide/moon", "name": "Light mode"},
                },
            ],
        },
        "extra_css": ["style.css"],
        # Search also works in files that are opened without a server.
        "plugins": ["search", "offline"],
        "markdown_extensions": [
            "tables",
            "md_in_html",
            "attr_list",
            {"toc": {"permalink": True, "toc_depth": 3}},
            "pymdownx.highlight",
            "pymdownx.superfences",
        ],
    }


def _index(texts: dict[str, str]) -> str:
    """Return `llms.txt`: the pages with a sentence about each, for language models."""
    lines = ["# Potok", "", f"> {DESCRIPTION}."]
    for name, listed in SECTIONS.items():
        lines += ["", f"## {name}", ""]
        lines += [f"- [{title_of(texts[page])}]({page}): {summary_of(texts[page])}" for page in listed]
    return "\n".join(lines) + "\n"
