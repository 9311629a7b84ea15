"""Write records to files: tasks write them under a temporary name, and the driver renames them at the commit."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from potok.errors import TopologyError
from potok.retry_policy import GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed, SinkAhead, SinkMisfit, SinkTaken, may_pass
from potok.sinks.file_formats import COMPRESSIONS, ending_of, write_json, write_parquet
from potok.sinks.guarantee import Guarantee
from potok.sinks.json_bodies import json_bodies, null_values
from potok.sinks.sink_spec import Batch, Opening, Part, PartTarget, PartWriter, Prepared, Rows, Types

PRIVATE = "_potok"
"""The directory for manifests and unfinished files; readers of a directory of files skip names like this."""

OWNER = "owner.json"


@dataclass(frozen=True, slots=True)
class FilesTarget(PartTarget):
    """A directory of Parquet or JSON files, on a disk that all tasks see under this path."""

    verb: ClassVar[str] = "to_files"

    path: str
    format: str
    compression: str
    with_key: bool

    @property
    def label(self) -> str:
        return f"{self.format} files in {self.path}"

    def check(self, types: Types, guarantee: Guarantee) -> None:
        if self.format not in COMPRESSIONS:
            raise TopologyError(f'files cannot be written as "{self.format}"', hint="choose parquet or json")
        if self.compression not in COMPRESSIONS[self.format]:
            known = ", ".join(name or "none" for name in COMPRESSIONS[self.format])
            raise TopologyError(f'{self.format} is not compressed by "{self.compression}"', hint=f"choose {known}")
        if self.format == "parquet" and (types.value is None or (self.with_key and types.key is None)):
            what = "values" if types.value is None else "keys"
            raise TopologyError(
                f"Parquet has typed columns, and these {what} have no type",
                hint=f'declare it where the {what} are made, for example value=Order, or write format="json"',
            )

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        if self.format == "json":
            bodies = json_bodies(rows, with_key=self.with_key)
            return Prepared([None] * len(rows), bodies.values, bodies.errors)
        return Prepared(rows.key, rows.value, {} if self.with_key else null_values(rows.value))

    def write(self, rows: Rows, query: str, step: str) -> Part:
        # The directory is created when the sink is opened. Creating it here would hide an unmounted disk, and fill
        # another one.
        directory = Path(self.path) / PRIVATE / unfinished(query, step)
        path = directory / f"{uuid.uuid4().hex}.tmp"
        try:
            if self.format == "json":
                write_json(path, rows.value, self.compression)
            else:
                write_parquet(path, rows, self.compression, with_key=self.with_key)
            with open(path, "rb") as file:
                os.fsync(file.fileno())
            return Part(str(path), len(rows), path.stat().st_size)
        except OSError:
            # The batch is void, and the next attempt needs the space.
            with suppress(OSError):
                _empty(directory)
            raise

    def open(self, opening: Opening) -> PartWriter:
        return FilesWriter(self, opening)


def unfinished(query: str, step: str) -> str:
    """Return the name of the directory for unfinished files of a step."""
    return f"tmp-{hashlib.blake2b(f'{query}/{step}'.encode(), digest_size=6).hexdigest()}"


class FilesWriter(PartWriter):
    """Renames the files of a batch.

    With exactly_once a name depends only on the batch, so that a repeated batch replaces its files; a manifest,
    written last, lists the files of a batch. Otherwise it also depends on the epoch, so that nothing is ever
    replaced, and several queries may share a directory.
    """

    def __init__(self, target: FilesTarget, opening: Opening) -> None:
        self._target, self._opening = target, opening
        self._directory = Path(target.path)
        self._private = self._directory / PRIVATE
        self._unfinished = self._private / unfinished(opening.query, opening.step)
        self._exactly = opening.guarantee is Guarantee.EXACTLY_ONCE
        self._suspect: int | None = opening.committed + 1
        try:
            self._unfinished.mkdir(parents=True, exist_ok=True)
            _empty(self._unfinished)
            if self._exactly:
                self._claim()
        except OSError as error:
            raise self._failed(opening.committed + 1, error) from error

    def accept(self, batch: Batch, parts: Sequence[Part]) -> None:
        """Make the parts visible. After the commit only this method retries; before it, the query retries the whole
        batch."""
        retry = Retry(GIVE_UP_MS)
        names = [self._name(batch, number) for number in range(len(parts))]
        unnamed = dict(zip(names, parts, strict=True))
        while True:
            try:
                self._give_names(unnamed)
                if self._exactly:
                    self._drop_dead(batch, len(parts))
                _sync(self._directory)
                if self._exactly:
                    self._write_manifest(batch, parts, names)
                _empty(self._unfinished)
                return
            except OSError as error:
                self._suspect = batch.number
                if self._opening.guarantee.before_commit or not may_pass(error) or not retry.wait():
                    raise self._failed(batch.number, error) from error

    def _give_names(self, parts: dict[str, Part]) -> None:
        """Rename parts and remove them from `parts`: a retry renames the rest."""
        for name in list(parts):
            os.replace(parts[name].path, self._directory / name)
            del parts[name]

    def close(self) -> None:
        """Do nothing: no files stay open between batches."""

    def _name(self, batch: Batch, number: int) -> str:
        part = f"{batch.number:010}-{number:03}"
        if not self._exactly:
            part = f"{self._unfinished.name.removeprefix('tmp-')}-{batch.epoch:06}-{part}"
        return f"part-{part}{ending_of(self._target.format, self._target.compression)}"

    def _drop_dead(self, batch: Batch, count: int) -> None:
        """Remove files of a void attempt: further files of this batch, or those of a batch that is empty now."""
        if self._suspect is not None and self._suspect < batch.number:
            self._drop_from(Batch(batch.epoch, self._suspect), 0)
            self._manifest(self._suspect).unlink(missing_ok=True)
        self._suspect = None
        self._drop_from(batch, count)

    def _drop_from(self, batch: Batch, number: int) -> None:
        while (path := self._directory / self._name(batch, number)).exists():
            path.unlink()
            number += 1

    def _manifest(self, number: int) -> Path:
        return self._private / f"{number:010}.json"

    def _write_manifest(self, batch: Batch, parts: Sequence[Part], names: Sequence[str]) -> None:
        listed = [{"name": n, "rows": p.rows, "bytes": p.bytes} for n, p in zip(names, parts, strict=True)]
        rows = sum(part.rows for part in parts)
        content = {"query": self._opening.query, "step": self._opening.step, "batch": batch.number, "rows": rows}
        draft = self._unfinished / "manifest"
        _write(draft, json.dumps(content | {"files": listed}))
        os.replace(draft, self._manifest(batch.number))
        _sync(self._private)

    def _claim(self) -> None:
        """Claim the directory: names only identify batches, so a directory has one owner."""
        me = {"query": self._opening.query, "step": self._opening.step}
        path = self._private / OWNER
        if not path.exists():
            draft = self._unfinished / OWNER
            _write(draft, json.dumps(me))
            # Unlike a rename, a link does not replace a claim made meanwhile by another query.
            with suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
            _sync(self._private)
        step, label = self._opening.step, self._target.label
        owner = _owner_in(path)
        if owner is None:
            hint = "restore the file from a backup, or choose another directory"
            raise SinkMisfit(step, label, f"{path} does not name the step that writes there", hint)
        if owner != me:
            remedy = "choose another directory"
            if owner["query"] == me["query"]:
                remedy += f', or, if it is the same sink under another name, pass name="{owner["step"]}"'
            raise SinkTaken(step, label, f'step "{owner["step"]}" of query "{owner["query"]}"', remedy)
        seen = max((int(name) for name in _manifests(self._private)), default=0)
        if seen > self._opening.committed + 1:
            remedy = "empty the directory, or choose another"
            raise SinkAhead(step, label, seen, self._opening.committed, remedy)

    def _failed(self, batch: int, error: OSError) -> DeliveryFailed:
        lost = self._opening.guarantee is Guarantee.AT_MOST_ONCE
        step, label = self._opening.step, self._target.label
        return DeliveryFailed(step, label, batch, str(error), lost=lost, passing=may_pass(error))


def batches_in(path: str | Path) -> dict[int, list[Path]]:
    """Return the files of a directory by batch, as listed in its manifests: each batch completely, or not at all."""
    private = Path(path) / PRIVATE
    found = [json.loads((private / f"{name}.json").read_text()) for name in sorted(_manifests(private))]
    return {batch["batch"]: [Path(path) / file["name"] for file in batch["files"]] for batch in found}


def _manifests(private: Path) -> list[str]:
    """Return the names of manifests, which are numbers; other files are ignored."""
    return [found.stem for found in private.glob("[0-9]*.json") if found.stem.isascii() and found.stem.isdigit()]


def _owner_in(path: Path) -> dict[str, str] | None:
    """Return the query and the step that own a directory; None if the file does not contain them."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in ("query", "step")):
        return None
    return found


def _write(path: Path, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _empty(directory: Path) -> None:
    """Remove files of failed tasks and batches."""
    for left in directory.iterdir():
        left.unlink(missing_ok=True)


def _sync(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
