"""Print the digest of the Helm chart and its examples, by which rendered manifests that are out of date are found."""

from __future__ import annotations

import hashlib
from pathlib import Path

HELM = Path(__file__).resolve().parents[2] / "deploy" / "helm"


def chart_digest() -> str:
    found = hashlib.sha256()
    for directory in ("potok", "examples"):
        for path in sorted((HELM / directory).rglob("*")):
            if path.is_file():
                found.update(f"{path.relative_to(HELM).as_posix()}\0".encode())
                found.update(path.read_bytes())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    print(chart_digest())
