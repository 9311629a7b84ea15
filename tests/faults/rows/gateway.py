"""A gateway is killed at each durable step and at random moments, or flooded: what it acknowledged is in the log."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import urllib3
from urllib3.exceptions import HTTPError

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sinks.guarantee import Guarantee
from potok.sinks.messages.mqtt import MqttTarget
from potok.sinks.messages.rabbitmq import RabbitMqTarget
from potok.sinks.sink_spec import Types
from tests.faults.drive import SCENE
from tests.faults.row import Proof, row
from tests.faults.rows.restarts import GIVE_UP_MS, _here
from tests.faults.scene import Scene
from tests.kill.answer import same
from tests.servers import _free_port, mqtt_server, rabbitmq_server
from tests.sinks.load import Load
from tests.sinks.rows import typed
from tests.sources.test_appender import values

RANDOM_KILLS = 30
STEPS = (
    *("gateway-before-append", "gateway-after-append", "gateway-before-position", "gateway-after-position"),
    *(f"log.append.{step}" for step in ("before", "written", "synced", "committed")),
)
TYPES = Types(typed("string"), typed("n bigint"))
MOST_BYTES = 600 << 20
"""More than a gateway needs, whatever comes."""

FOUR_LISTENERS = """
[web]
type = "webhook"
topic = "web"
listen = "127.0.0.1:{port}"
id = "header:X-Id"
[queue]
type = "rabbitmq"
topic = "queue"
url = "{queue}"
queue = "q"
id = "message_id"
[sensors]
type = "mqtt"
topic = "sensors"
url = "{sensors}"
subscribe = ["t"]
client_id = "gateway"
id = "header:message-id"
[lines]
type = "files"
topic = "lines"
path = "{lines}"
poll_interval = "5 ms"
"""


class Program:
    """A gateway in a process, with the file `gateway.toml` of a directory."""

    def __init__(self, scene: Scene, options: str, failpoint: str = "") -> None:
        file = scene.directory / "gateway.toml"
        file.write_text(options)
        command = [sys.executable, "-c", "from potok.cli.main import main; main()", "gateway", str(file), "--json"]
        environment = {**os.environ, "POTOK_FAILPOINT": failpoint, "POTOK_BROKER": f"file:{scene.directory}/data"}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**environment, SCENE: scene.name}
        )
        assert self._process.stdout is not None
        self._lines = self._process.stdout
        line = self._lines.readline()
        self.address = json.loads(line)["address"] if line else ""

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(60)

    def wait_for_its_death(self, seconds: float) -> None:
        assert self._process.wait(seconds) == -signal.SIGKILL

    def end(self) -> dict[str, dict[str, Any]]:
        """Stop it, and return the last counts of each listener."""
        self._process.terminate()
        found = [json.loads(line) for line in self._lines]
        assert self._process.wait(60) == 0
        return {each["name"]: each["counts"] for each in found if each["event"] == "stopped"}

    @property
    def memory(self) -> int:
        return int(psutil.Process(self._process.pid).memory_info().rss)


class Poster:
    """A thread that repeats each request until it is answered with 202, and then goes on with the next."""

    def __init__(self, port: int) -> None:
        self.sent = 0
        self._port, self._ending = port, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with urllib3.PoolManager(retries=False, timeout=5.0) as pool:
            while not self._ending.wait(0.002):
                try:
                    headers = {"X-Id": str(self.sent)}
                    body = b"%d" % self.sent
                    found = pool.request("POST", f"http://127.0.0.1:{self._port}/", body=body, headers=headers)
                except HTTPError:
                    continue
                self.sent += found.status == 202

    def end(self) -> list[int]:
        self._ending.set()
        self._thread.join(60)
        # The next one may have landed without its answer.
        return list(range(self.sent))


class LineWriter:
    """A thread that appends lines to a file."""

    def __init__(self, path: Path) -> None:
        self._path, self._count, self._ending = path, 0, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            while not self._ending.wait(0.01):
                file.write(b"%d\n" % self._count)
                self._count += 1

    def end(self) -> int:
        """Return how many lines there are."""
        self._ending.set()
        self._thread.join(60)
        return self._count


@row("gateway-killed", "the gateway is killed at each durable step, and at 30 random moments", servers=("rabbitmq",))
def gateway_killed(scene: Scene) -> Proof:
    port, lines = _free_port(), scene.directory / "app.log"
    with _here(rabbitmq_server) as rabbit, _here(mqtt_server) as mosquitto:
        options = FOUR_LISTENERS.format(port=port, queue=rabbit.url, sensors=mosquitto.url, lines=lines)
        # The session that keeps messages while the gateway is away begins with its first start.
        Program(scene, options).end()
        poster = Poster(port)
        queue = RabbitMqTarget(rabbit.url, "q", None, "", True, True, GIVE_UP_MS, False)
        sensors = MqttTarget(mosquitto.url, "t", 1, False, "5", GIVE_UP_MS, False)
        loads = [Load(each, TYPES, Guarantee.AT_LEAST_ONCE, _rows, each=20, pause_s=0.05) for each in (queue, sensors)]
        writer = LineWriter(lines)
        for step in [*STEPS, *[""] * RANDOM_KILLS]:
            program = Program(scene, options, f"{step}:{scene.random.randint(1, 5)}" if step else "")
            if step:
                program.wait_for_its_death(60)
            else:
                time.sleep(scene.random.uniform(0.0, 0.8))
                program.kill()
        for load in loads:
            load.end()
        program = Program(scene, options)
        posted, written = poster.end(), writer.end()
        broker = EmbeddedBroker(scene.directory / "data")

        def numbers(topic: str) -> list[int]:
            return [n if isinstance(n := json.loads(value), int) else n["n"] for value in values(broker, topic)]

        for topic, wanted in (("queue", loads[0].sent), ("sensors", loads[1].sent), ("lines", list(range(written)))):
            scene.wait_until(lambda topic=topic, wanted=wanted: set(numbers(topic)) >= set(wanted), f"all of {topic}")
        program.end()
    found = numbers("web")
    same("webhooks", Counter(found) - Counter([len(posted)]), Counter(posted))
    same("messages of RabbitMQ", Counter(numbers("queue")), Counter(loads[0].sent))
    same("messages of MQTT", Counter(numbers("sensors")), Counter(loads[1].sent))
    same("lines", Counter(set(numbers("lines"))), Counter(range(written)))
    twice = len(numbers("lines")) - written
    totals = f"{len(posted)} webhooks, {len(loads[0].sent)} and {len(loads[1].sent)} messages"
    done = f"killed {len(STEPS)} times at a step and {RANDOM_KILLS} times at random: {totals} landed once by id"
    return Proof(f"{done}; of {written} lines, {twice} landed twice, as documented")


def _rows(numbers: range) -> list[tuple[Any, Any]]:
    return [("k", {"n": number}) for number in numbers]


@row("udp-flood", "more datagrams than the gateway can read, some of which are not metrics")
def udp_flood(scene: Scene) -> Proof:
    sockets, each = 4, 100_000
    options = (
        '[m]\ntype = "statsd"\ntopic = "m"\nlisten = "127.0.0.1:0"\nsockets = 2\nreceive_buffer = 262144\n'
        'overload = { when_full = "drop_oldest", max_records = 20000 }\n'
    )
    program = Program(scene, options)
    host, _, port = program.address.rpartition(":")

    def flood(number: int) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect((host, int(port)))
            for count in range(each):
                sender.send(b"page.views:1|c" if count % 100 else b"not a metric %d" % number)

    with _watching(program) as memory, ThreadPoolExecutor(sockets) as threads:
        list(threads.map(flood, range(sockets)))
    counts = program.end()["m"]
    found = len(values(EmbeddedBroker(scene.directory / "data"), "m"))
    lost = counts["lost"]
    same("datagrams", {"counted": found + counts["kernel_dropped"] + sum(lost.values())}, {"counted": sockets * each})
    same("landed", {"landed": found}, {"landed": counts["landed"]})
    assert lost.pop("malformed") > 0
    assert memory() < MOST_BYTES, f"{memory():,} bytes"
    text = f"{sockets * each} datagrams = {found} landed + {counts['kernel_dropped']} dropped by the kernel"
    return Proof(f"{text} + {sum(lost.values())} dropped by the buffer + what is no metric; at most {memory():,} bytes")


for _policy in ("block", "reject", "drop_newest", "drop_oldest"):
    row(f"webhook-flood-{_policy}", f"more requests than the buffer holds, with when_full = {_policy}")(
        lambda scene, policy=_policy: _webhook_flood(policy, scene)
    )


def _webhook_flood(policy: str, scene: Scene) -> Proof:
    clients, each = 64, 100
    options = (
        '[w]\ntype = "webhook"\ntopic = "w"\nlisten = "127.0.0.1:0"\n'
        f'overload = {{ when_full = "{policy}", max_records = 20, max_bytes = 1000000 }}\n'
    )
    program = Program(scene, options)
    body = b'"%b"' % (b"x" * 50_000)

    def post(_: int) -> Counter[int]:
        with urllib3.PoolManager(retries=False, timeout=60.0) as pool:
            return Counter(pool.request("POST", f"http://{program.address}/", body=body).status for _ in range(each))

    statuses: Counter[int] = Counter()
    with _watching(program) as memory, ThreadPoolExecutor(clients) as threads:
        for found in threads.map(post, range(clients)):
            statuses += found
    counts = program.end()["w"]
    landed = len(values(EmbeddedBroker(scene.directory / "data"), "w"))
    lost, refused = sum(counts["lost"].values()), sum(counts["refused"].values())
    same("requests", {"received": counts["received"]}, {"received": landed + lost})
    same("answers", {"answers": counts["received"] + refused}, {"answers": clients * each})
    same("statuses", statuses, Counter({202: landed}) + Counter({429 if policy == "block" else 503: lost + refused}))
    assert memory() < MOST_BYTES, f"{memory():,} bytes"
    return Proof(f"{landed} landed, {lost} lost, {refused} refused of {clients * each}; at most {memory():,} bytes")


@contextmanager
def _watching(program: Program) -> Iterator[Callable[[], int]]:
    """Yield a function that returns the most memory that a gateway had until now."""
    most, ending = 0, threading.Event()

    def look() -> None:
        nonlocal most
        while not ending.wait(0.02):
            most = max(most, program.memory)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield lambda: most
    finally:
        ending.set()
        thread.join(10)
