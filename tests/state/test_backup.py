"""A backup is read from its own directory, whatever its manifest says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from potok.state.backup import MANIFEST, Manifest, NoBackup, ShardFile
from potok.state.entry import Entry


@pytest.mark.parametrize("name", ["../shard-0.arrow", "/etc/passwd", "shard-0.arrow/../x", "shard-x.arrow", ""])
def test_a_manifest_names_no_file_elsewhere(tmp_path: Path, name: str) -> None:
    manifest = Manifest("q", Entry(), {}, (ShardFile("shard-0.arrow", 1, 1, "0"),), 0, "file:x")
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest
    data = json.loads((tmp_path / MANIFEST).read_text())
    data["files"][0]["name"] = name
    (tmp_path / MANIFEST).write_text(json.dumps(data))
    with pytest.raises(NoBackup, match="names a file"):
        Manifest.read(tmp_path)
