"""Damage one file at random in each trial and check the result: `python -m tests.storage.fuzz shard 1 500`.

Each trial runs in its own process. It must end with correct results, or with a `PotokError` that has a hint; any
other outcome is printed with the seed that reproduces it.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.storage import shard
from tests.storage.trial import copy, damage, files_of, in_child, is_bad, steps

MOST = 10
"""Stop after this many bad trials."""

Trial = Callable[[Path], str]


def shard_trials(template: Path) -> Trial:
    shard.build(template)
    before = shard.contents(copy(template, template.parent / "before"))
    after = shard.write_more(copy(template, template.parent / "after"))

    def trial(directory: Path) -> str:
        return steps(
            ("read", lambda: must_be(shard.contents(directory), before)),
            ("write", lambda: must_be(shard.write_more(directory), after)),
        )

    return trial


def directory_trials(template: Path) -> Trial:
    from tests.storage import scene

    expected = scene.build(template)

    def trial(directory: Path) -> str:
        return steps(
            ("read", lambda: scene.look(directory, expected)),
            ("run", lambda: scene.go_on(directory, expected)),
            ("verify", lambda: scene.verify(directory)),
        )

    return trial


SCENES = {"shard": shard_trials, "directory": directory_trials}


def must_be(found: dict[Any, Any], right: dict[Any, Any]) -> None:
    wrong = [key for key in right.keys() | found.keys() if found.get(key) != right.get(key)]
    assert not wrong, f"wrong: {wrong[:5]}"


def main(scene: str, first: int, count: int) -> int:
    root = Path(tempfile.mkdtemp(prefix="potok-fuzz-"))
    try:
        trial = SCENES[scene](root / "template")
        return _run(trial, root, range(first, first + count))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _run(trial: Trial, root: Path, seeds: range) -> int:
    seen: Counter[str] = Counter()
    bad = 0
    for seed in seeds:
        chosen = random.Random(seed)
        directory = copy(root / "template", root / "data")
        path = _pick(chosen, directory)
        what = damage(chosen, path)
        said = in_child(lambda directory=directory: trial(directory))  # type: ignore[misc]
        if is_bad(said):
            bad += 1
            print(f"BAD seed {seed}: {what}\n{said}", flush=True)
            if bad == MOST:
                break
        kind = path.name if path.suffix in ("", ".mdb", ".sums") else path.suffix
        seen.update(f"{kind} {': '.join(line.split(': ')[:2])}" for line in said.splitlines())
    for line, times in sorted(seen.items()):
        print(f"{times:6} {line}")
    print(f"{len(seeds)} trials, {bad} bad")
    return 1 if bad else 0


def _pick(chosen: random.Random, directory: Path) -> Path:
    """Choose any file; half of the time one that holds pages or records, because most files are locks."""
    files = files_of(directory)
    if chosen.random() < 0.5:
        files = [path for path in files if path.name == "data.mdb" or path.suffix in (".segment", ".parquet")]
    return chosen.choice(files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
