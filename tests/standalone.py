"""A standalone Spark cluster on this machine: a master and its workers, each a process of its own."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pyspark

from potok.java_runtime import find_java, java_home_for_spark
from potok.log.kafka.development.server import free_ports
from potok.settings import Settings

HOST = "127.0.0.1"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
START_S = 120.0
ROOT = str(Path(__file__).parents[1])
"""Executors import functions of the tests, too."""


class StandaloneCluster:
    """Each worker has one core, so a query that asks for all cores has one executor on each."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self._directory, self._secret = directory, secrets.token_hex(16)
        self._processes: list[subprocess.Popen[bytes]] = []
        (directory / "spark").mkdir(parents=True)
        for part in Path(pyspark.__file__).parent.iterdir():
            (directory / "spark" / part.name).symlink_to(part)
        port, self._page = free_ports(2)
        self.url = f"spark://{HOST}:{port}"
        self._start("master", MASTER, "--host", HOST, "--port", str(port), "--webui-port", str(self._page))
        for number in range(workers):
            self.add_worker(str(number))
        self._wait_for(workers)

    @property
    def settings(self) -> Mapping[str, str]:
        """The options of Spark for a driver of this cluster."""
        return {
            "driver.host": HOST,
            "driver.bindAddress": HOST,
            "executor.memory": "512m",
            "executor.cores": "1",
            "authenticate.secret": self._secret,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a driver and of the servers."""
        home = str(self._directory / "spark")
        return {"SPARK_HOME": home, "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": HOST, "PYTHONPATH": ROOT}

    def add_worker(self, name: str) -> None:
        work = self._directory / f"worker-{name}"
        options = ("--host", HOST, "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work))
        self._start(f"worker-{name}", WORKER, *options, self.url)

    def _start(self, name: str, main: str, *arguments: str) -> None:
        home = self._directory / "spark"
        options = [
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-Dspark.authenticate=true",
            f"-Dspark.authenticate.secret={self._secret}",
        ]
        java = java_home_for_spark(find_java(), Settings.load().cache_path)
        with (self._directory / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(java / "bin" / "java"), "-cp", f"{home}/jars/*", *options, main, *arguments],
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, **self.environment, "JAVA_HOME": str(java)},
                )
            )

    def _wait_for(self, workers: int) -> None:
        deadline = time.monotonic() + START_S
        while self._alive() < workers:
            ended = [process.args for process in self._processes if process.poll() is not None]
            assert not ended, f"ended: {ended}"
            assert time.monotonic() < deadline, f"the cluster in {self._directory} does not start"
            time.sleep(0.1)

    def _alive(self) -> int:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._page}/json/", timeout=5) as answer:
                return answer.read().count(b'"ALIVE"') - 1
        except OSError:
            return 0

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
