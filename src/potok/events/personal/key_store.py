"""The keys of subjects, kept apart from the log and its backups: a directory with one SQLite database.

Deleted keys are overwritten. A forgotten subject keeps a row without a key, so that its events are distinguished from
those of a key that this store never had.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from potok.errors import PotokError, SetupError
from potok.machine import usable_path
from potok.permissions import private_directory, write_private

FILE_NAME = "keys.sqlite"
ID_BYTES, KEY_BYTES = 16, 32
_BUSY_S = 30.0
_AT_ONCE = 500

_TABLES = """
CREATE TABLE IF NOT EXISTS subjects (
    subject BLOB PRIMARY KEY, id BLOB NOT NULL UNIQUE, key BLOB
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS topics (id BLOB, topic TEXT, PRIMARY KEY (id, topic)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS announcements (id BLOB, topic TEXT, subject TEXT, PRIMARY KEY (id, topic)) WITHOUT ROWID;
"""


class KeyStoreUnavailable(PotokError):
    """The key store cannot be read or written now."""

    def __init__(self, path: Path, cause: str) -> None:
        super().__init__(f"the key store {path} cannot be used: {cause}", hint="check its disk and its owner")


class UnknownSubject(PotokError):
    """A subject that has no key, because nothing was encrypted for it."""

    def __init__(self, subject: str) -> None:
        hint = "check the spelling, and the setting personal_keys"
        super().__init__(f'nothing was encrypted for subject "{subject}"', hint=hint)


@dataclass(frozen=True, slots=True)
class SubjectKey:
    """The key of a subject and its id; None once the subject was forgotten."""

    id: bytes
    key: bytes | None


@dataclass(frozen=True, slots=True)
class Announcement:
    """A topic that must learn that a subject was forgotten."""

    id: bytes
    topic: str
    subject: str


class KeyStore:
    """Open the database for each call, so that it can be used in any process, also after a fork. Picklable."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keys(self, ids: Iterable[bytes]) -> dict[bytes, bytes | None]:
        """Return keys by id: None where the subject was forgotten; an id that was never here is left out."""
        wanted, found = list(set(ids)), dict[bytes, bytes | None]()
        if not wanted:
            return found
        with self._opened() as database:
            for part in _parts(wanted):
                found.update(database.execute(f"SELECT id, key FROM subjects WHERE id IN ({_marks(part)})", part))
        return found

    def for_writing(self, subjects: Iterable[str], topic: str) -> dict[str, SubjectKey]:
        """Return the keys of subjects, creating those that are missing, and note that the topic has their events.

        New keys are durable when this returns.
        """
        hashes = {_hash(subject): subject for subject in subjects}
        if not hashes:
            return {}
        with self._opened() as database:
            found = _known(database, list(hashes), topic)
            if len(found) < len(hashes) or not all(noted for _, noted in found.values()):
                with _transaction(database):
                    new = [(each, os.urandom(ID_BYTES), os.urandom(KEY_BYTES)) for each in hashes if each not in found]
                    database.executemany("INSERT OR IGNORE INTO subjects VALUES (?, ?, ?)", new)
                    for part in _parts(list(hashes)):
                        database.execute(
                            f"INSERT OR IGNORE INTO topics SELECT id, ? FROM subjects WHERE subject IN ({_marks(part)})"
                            " AND key IS NOT NULL",
                            [topic, *part],
                        )
                    found = _known(database, list(hashes), topic)
        return {hashes[each]: key for each, (key, _) in found.items()}

    def forget(self, subject: str) -> list[Announcement]:
        """Delete the key of a subject, durably; return the topics that have to learn it, also after a crash."""
        with self._opened() as database:
            with _transaction(database):
                row = database.execute("SELECT id FROM subjects WHERE subject = ?", [_hash(subject)]).fetchone()
                if row is None:
                    raise UnknownSubject(subject)
                (id_,) = row
                if database.execute("SELECT 1 FROM subjects WHERE id = ? AND key IS NOT NULL", [id_]).fetchone():
                    database.execute("UPDATE subjects SET key = NULL WHERE id = ?", [id_])
                    database.execute(
                        "INSERT OR IGNORE INTO announcements SELECT id, topic, ? FROM topics WHERE id = ?",
                        [subject, id_],
                    )
            return [each for each in _announcements(database) if each.id == id_]

    def unannounced(self) -> list[Announcement]:
        """Return the announcements that were not made, because a process was killed after it deleted a key."""
        with self._opened() as database:
            return _announcements(database)

    def announced(self, announcement: Announcement) -> None:
        """Note that a topic has learnt it."""
        with self._opened() as database, _transaction(database):
            named = [announcement.id, announcement.topic]
            database.execute("DELETE FROM announcements WHERE id = ? AND topic = ?", named)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        file = self.path / FILE_NAME
        try:
            private_directory(self.path)
            if not file.exists():
                _create(file)
            with closing(sqlite3.connect(file, timeout=_BUSY_S, isolation_level=None)) as database:
                # A deleted key leaves neither the pages of the database nor a journal behind.
                for pragma in ("secure_delete = ON", "journal_mode = TRUNCATE", "synchronous = FULL"):
                    database.execute(f"PRAGMA {pragma}")
                yield database
        except (sqlite3.Error, OSError) as error:
            raise KeyStoreUnavailable(file, str(error)) from error


def open_key_store(url: str) -> KeyStore:
    """Open the key store at a URL: `file:DIR` or a directory."""
    scheme, colon, path = url.partition(":")
    if not colon:
        path = url
    elif scheme != "file" or path.startswith("//"):
        hint = 'write a directory that every worker sees: personal_keys = "file:/secure/potok-keys"'
        raise SetupError(f'"{url}" is not the location of a key store', hint=hint)
    return KeyStore(usable_path(path, "the key store"))


def known_key_store(url: str) -> KeyStore | None:
    """Open the key store at a URL; None if there is none."""
    return open_key_store(url) if url else None


def _create(file: Path) -> None:
    """Create the database under another name, so that no process sees it without its tables."""
    new = file.with_name(f".{FILE_NAME}.{os.getpid()}.{os.urandom(4).hex()}")
    write_private(new, b"")
    try:
        with closing(sqlite3.connect(new, isolation_level=None)) as database:
            database.executescript(_TABLES)
        # Of two processes that create it at the same time, one fails here and uses that of the other.
        os.link(new, file)
    except FileExistsError:
        pass
    finally:
        new.unlink()


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _known(database: sqlite3.Connection, hashes: Sequence[bytes], topic: str) -> dict[bytes, tuple[SubjectKey, bool]]:
    """Return the known subjects, and whether nothing has to be noted for the topic."""
    found: dict[bytes, tuple[SubjectKey, bool]] = {}
    for part in _parts(hashes):
        query = (
            "SELECT subject, subjects.id, key, topic IS NOT NULL FROM subjects"
            " LEFT JOIN topics ON topics.id = subjects.id AND topic = ?"
            f" WHERE subject IN ({_marks(part)})"
        )
        for subject, id_, key, noted in database.execute(query, [topic, *part]):
            found[subject] = SubjectKey(id_, key), bool(noted) or key is None
    return found


def _announcements(database: sqlite3.Connection) -> list[Announcement]:
    rows = database.execute("SELECT id, topic, subject FROM announcements ORDER BY id, topic")
    return [Announcement(*row) for row in rows]


def _hash(subject: str) -> bytes:
    return hashlib.sha256(subject.encode(errors="surrogatepass")).digest()


def _parts(items: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]


def _marks(items: Sequence[object]) -> str:
    return ", ".join("?" * len(items))
