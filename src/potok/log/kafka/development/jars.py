"""Jars from Maven Central, fetched on first use by the Ivy that comes with Spark, and cached."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from potok.log.kafka.development.ivy import Progress, retrieve
from potok.log.kafka.errors import JarsNotFound

SCALA = "2.13"
KAFKA_VERSION = "3.9.1"

MANIFEST = "jars.json"


@dataclass(frozen=True, slots=True)
class Module:
    """One artifact of Maven Central, with or without its dependencies."""

    organisation: str
    name: str
    version: str
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Bundle:
    """Jars that are used together. `name` is also that of their directory in the cache.

    Of the dependencies, only modules whose names start with one of `keep` are used; all, if it is empty.
    """

    title: str
    name: str
    modules: tuple[Module, ...]
    keep: tuple[str, ...] = ()


SERVER = Bundle(
    f"Kafka {KAFKA_VERSION}",
    f"kafka-{KAFKA_VERSION}",
    (
        Module("org.apache.kafka", f"kafka_{SCALA}", KAFKA_VERSION),
        # Kafka logs through SLF4J and needs a backend.
        Module("org.slf4j", "slf4j-reload4j", "1.7.36"),
    ),
)

_CONNECTOR = f"spark-sql-kafka-0-10_{SCALA}"
_TOKENS = f"spark-token-provider-kafka-0-10_{SCALA}"

KNOWN_CONNECTOR = Bundle(
    "Spark's connector to Kafka",
    "spark-kafka-4.2.0",
    (
        Module("org.apache.spark", _CONNECTOR, "4.2.0", alone=True),
        Module("org.apache.spark", _TOKENS, "4.0.0", alone=True),
        Module("org.apache.kafka", "kafka-clients", "3.9.1", alone=True),
        Module("org.apache.commons", "commons-pool2", "2.12.1", alone=True),
    ),
)
"""Works with Spark 4.3, whose own connector is not available everywhere."""


def server_jars(cache: Path, progress: Progress | None = None) -> list[Path]:
    """Return the jars of a Kafka server."""
    return fetch(SERVER, cache, progress)


def connector_jars(cache: Path, progress: Progress | None = None) -> list[Path]:
    """Return the jars that Spark needs to read and write Kafka: its connector, Kafka's client and two more.

    The connector of the installed Spark is tried first. Cached jars are used without network access.
    """
    version = importlib.metadata.version("pyspark")
    bundles = (_connector_of(version), KNOWN_CONNECTOR)
    for bundle in bundles:
        if found := cached(bundle, cache):
            return found
    refusals: list[JarsNotFound] = []
    for bundle in bundles:
        try:
            return fetch(bundle, cache, progress)
        except JarsNotFound as error:
            refusals.append(error)
    raise refusals[-1]


def _connector_of(version: str) -> Bundle:
    return Bundle(
        f"Spark {version}'s connector to Kafka",
        f"spark-kafka-{version}-own",
        (Module("org.apache.spark", _CONNECTOR, version),),
        # Spark contains everything else.
        keep=("spark-sql-kafka-", "spark-token-provider-kafka-", "kafka-clients", "commons-pool2"),
    )


def fetch(bundle: Bundle, cache: Path, progress: Progress | None = None) -> list[Path]:
    """Return the jars of a bundle, from the cache if they are intact. One process fetches, the others wait for it."""
    if found := cached(bundle, cache):
        return found
    root = cache / "jars"
    try:
        with _locked(root / f"{bundle.name}.lock"):
            return cached(bundle, cache) or _fetch(bundle, root, progress)
    except OSError as error:
        hint = "set POTOK_CACHE_DIR to a directory that can be written to"
        raise JarsNotFound(bundle.title, str(error), hint) from error


def _fetch(bundle: Bundle, root: Path, progress: Progress | None) -> list[Path]:
    """Replace the cache only after all jars have arrived."""
    with tempfile.TemporaryDirectory(dir=root, prefix=f"{bundle.name}.") as draft:
        target = Path(draft) / "jars"
        retrieve(bundle.title, _ivy_file(bundle), target, _ivy_jar(), progress)
        names = _write_manifest(bundle, target)
        shutil.rmtree(root / bundle.name, ignore_errors=True)
        target.rename(root / bundle.name)
    return [root / bundle.name / name for name in names]


def cached(bundle: Bundle, cache: Path) -> list[Path]:
    """Return the jars of a bundle in the cache; none if one is missing or damaged."""
    directory = cache / "jars" / bundle.name
    try:
        expected = json.loads((directory / MANIFEST).read_text())
        whole = all(_fingerprint(directory / name) == known for name, known in expected.items())
    except (OSError, ValueError):
        return []
    return [directory / name for name in sorted(expected)] if whole else []


def _write_manifest(bundle: Bundle, directory: Path) -> list[str]:
    jars = sorted(directory.glob("*.jar"))
    broken = [jar.name for jar in jars if not zipfile.is_zipfile(jar)]
    if broken or not jars:
        why = f"{', '.join(broken)} arrived damaged" if broken else "there are none"
        raise JarsNotFound(bundle.title, why, "try again; if it happens again, a proxy changes the downloads")
    (directory / MANIFEST).write_text(json.dumps({jar.name: _fingerprint(jar) for jar in jars}))
    return [jar.name for jar in jars]


def _fingerprint(path: Path) -> list[object]:
    with path.open("rb") as file:
        return [path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()]


def _ivy_jar() -> Path:
    found = importlib.util.find_spec("pyspark")
    directories: Sequence[str] = (found.submodule_search_locations or ()) if found else ()
    for directory in directories:
        for jar in sorted(Path(directory, "jars").glob("ivy-*.jar")):
            return jar
    raise JarsNotFound("Kafka", "Spark was installed without Ivy", "pip install --force-reinstall pyspark")


def _ivy_file(bundle: Bundle) -> str:
    """Return Ivy's module descriptor."""
    lines = [
        f'<dependency org="{module.organisation}" name="{module.name}" rev="{module.version}" '
        + f'conf="*->{"master" if module.alone else "default"}" transitive="{str(not module.alone).lower()}"/>'
        for module in bundle.modules
    ]
    if bundle.keep:
        lines.append(f'<exclude module="^(?!{"|".join(bundle.keep)}).*$" matcher="regexp"/>')
    body = "".join(lines)
    return (
        f'<ivy-module version="2.0"><info organisation="potok" module="{bundle.name}"/>'
        f"<dependencies>{body}</dependencies></ivy-module>"
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
