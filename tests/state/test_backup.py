"""A backup is read only from its own directory, whatever its manifest says."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.state.backup import Manifest, NoBackup, ShardFile
from potok.state.entry import Entry


@pytest.mark.parametrize("name", ["../shard-0.arrow", "/etc/passwd", "shard-0.arrow/../x", "shard-x.arrow", ""])
def test_a_manifest_cannot_name_a_file_outside_its_directory(tmp_path: Path, name: str) -> None:
    for file in ("shard-0.arrow", name):
        manifest = Manifest("q", Entry(), {}, (ShardFile(file, 1, 1, "0"),), 0, "file:x")
        manifest.write(tmp_path)
        if file != name:
            assert Manifest.read(tmp_path) == manifest
    with pytest.raises(NoBackup, match="lists a file"):
        Manifest.read(tmp_path)
