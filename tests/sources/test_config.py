"""Files of listeners, and the mistakes in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from potok.sources import GrowingFiles, Mqtt, Overload, RabbitMq, Udp, Webhook, load_gateway
from potok.sources.config import BadGatewayFile


def write(directory: Path, text: str) -> Path:
    path = directory / "gateway.toml"
    path.write_text(text)
    return path


def test_a_file_gives_the_log_and_the_listeners(tmp_path: Path) -> None:
    found = load_gateway(
        write(
            tmp_path,
            """
            broker = "file:./data"
            [hook]
            type = "webhook"
            listen = "127.0.0.1:0"
            topic = "hooks"
            signature = "github"
            secrets = ["a", "b"]
            overload = { when_full = "reject", max_age = "1 minute" }
            [metrics]
            type = "udp"
            listen = "[::1]:8125"
            topic = "metrics"
            overload = { when_full = "drop_newest" }
            [log]
            type = "files"
            path = "*.log"
            topic = "log"
            poll_interval = 2
            [queue]
            type = "rabbitmq"
            url = "amqp://localhost/"
            queue = "orders"
            topic = "orders"
            id = "message_id"
            [sensors]
            type = "mqtt"
            url = "mqtt://localhost"
            subscribe = ["sensors/#"]
            client_id = "potok"
            topic = "sensors"
            """,
        )
    )
    assert found.broker == "file:./data"
    assert found.listeners == [
        Webhook(
            name="hook",
            listen="127.0.0.1:0",
            topic="hooks",
            signature="github",
            secrets=("a", "b"),
            overload=Overload(when_full="reject", max_age="1 minute"),
        ),
        Udp(name="metrics", listen="[::1]:8125", topic="metrics", overload=Overload(when_full="drop_newest")),
        GrowingFiles(name="log", path="*.log", topic="log", poll_interval=2),
        RabbitMq(name="queue", url="amqp://localhost/", queue="orders", topic="orders", id="message_id"),
        Mqtt(name="sensors", url="mqtt://localhost", subscribe=("sensors/#",), client_id="potok", topic="sensors"),
    ]


GOOD = '[m]\ntype = "udp"\ntopic = "t"\nlisten = "127.0.0.1:0"\noverload = { when_full = "drop_newest" }\n'


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "there is no listener", "write a table"),
        ("[m", "the file is not TOML", ""),
        ("broker = 1", "broker is not text", "file:./data"),
        ("m = 1", '"m" is not a table', r"write \[m\]"),
        ("[m]", "there is no type", "use one of"),
        ('[m]\ntype = "upd"', "there is no type 'upd'", 'did you mean type = "udp"'),
        ('[m]\ntype = "udp"', 'needs the option "topic"', 'topic = "..."'),
        (GOOD + "lisen = 1", 'has no option "lisen"', 'did you mean "listen"'),
        (GOOD + "sockets = true", "sockets = True does not have the right type", "sockets = 1000"),
        (GOOD + 'sockets = "2"', "sockets = '2' does not have the right type", "sockets = 1000"),
        (GOOD + "group = 7", "group = 7 does not have the right type", 'group = "..."'),
        (GOOD.replace("when_full", "when_fall"), 'overload has no option "when_fall"', 'did you mean "when_full"'),
        (GOOD.replace("drop_newest", "block"), "UDP has no flow control", "drop_newest or drop_oldest"),
        (GOOD.replace('{ when_full = "drop_newest" }', "1"), "overload is not a table", "when_full"),
        (GOOD.replace("127.0.0.1:0", "here"), '"here" is not an address', "HOST:PORT"),
        ('[l]\ntype = "tcp"\ntopic = "a b"\nlisten = "127.0.0.1:0"', "cannot be the name of a topic", "1 to 249"),
        ('[q]\ntype = "rabbitmq"\ntopic = "t"\ndeclare = "maybe"', "declare = 'maybe'", "write declare = true"),
        ('[h]\ntype = "http"\ntopic = "t"\nurl = "http://h/"\ntimeout = 0', "timeout must be longer than 0", "30 s"),
        ('[w]\ntype = "webhook"\ntopic = "t"\nlisten = "a:1"\nsecrets = "x"', "secrets is not a list", "secrets = "),
        ('[w]\ntype = "webhook"\ntopic = "t"\nlisten = "a:1"\nbody = "xml"', "body = 'xml'", 'body = "json" or'),
        ('[f]\ntype = "files"\ntopic = "t"\npath = "x"\npoll_interval = "soon"', '"soon" is not a duration', ""),
    ],
)
def test_a_mistake_is_reported_with_its_table_and_a_hint(tmp_path: Path, text: str, message: str, hint: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(BadGatewayFile, match=message) as caught:
        load_gateway(path)
    assert str(path) in caught.value.message
    assert re.search(hint, caught.value.hint)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadGatewayFile, match="No such file"):
        load_gateway(tmp_path / "missing.toml")
