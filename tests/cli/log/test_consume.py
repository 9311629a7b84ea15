from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from potok.cli.log.consume import as_line
from potok.log.open import open_broker
from potok.log.plain_records import record_as_object
from potok.records.log_record import LogRecord


@pytest.fixture
def log(tmp_path: Path):
    broker = open_broker(f"file:{tmp_path / 'data'}")
    yield broker
    broker.close()


def append(log, *values: str, partition: int = 0) -> None:
    log.append("orders", [LogRecord(None, value.encode(), 1) for value in values], partition)


def values(result) -> list[str]:
    return [record["value"] for record in result.objects]


def start(directory: Path, *words: str) -> subprocess.Popen[str]:
    # A suite that runs in the background of a shell has SIGINT ignored, and hands that on.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from potok.cli.main import main; main()"
    )
    command = [sys.executable, "-c", program, "consume", "orders", *words]
    return subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_last_few_records_are_shown(potok, log) -> None:
    log.create_topic("orders", 2)
    append(log, *"abcdefgh", partition=0)
    append(log, *"ijklmnop", partition=1)
    assert len(values(potok("consume", "orders", "--json"))) == 10
    assert values(potok("consume", "orders", "--json", "--last", "1", "--partition", "0")) == ["h"]
    assert values(potok("consume", "orders", "--json", "--last", "0")) == []


def test_from_the_beginning_all_are_shown_up_to_the_most_that_are_wanted(potok, log) -> None:
    log.create_topic("orders")
    append(log, *map(str, range(25)))
    assert values(potok("consume", "orders", "--from-beginning", "--json")) == [str(n) for n in range(25)]
    assert values(potok("consume", "orders", "--from-beginning", "--json", "--max", "2")) == ["0", "1"]


def test_an_empty_topic_shows_nothing(potok, log) -> None:
    log.create_topic("orders")
    assert (potok("consume", "orders").out, potok("consume", "orders").code) == ("", 0)


def test_an_object_holds_the_record_and_its_position() -> None:
    record = LogRecord(b"k", b"v", 5, (("h", b"\xff"),), "orders", 2, 9)
    assert record_as_object(record) == {
        "key": "k",
        "value": "v",
        "timestamp": 5,
        "partition": 2,
        "offset": 9,
        "headers": {"h": {"base64": "/w=="}},
    }


@pytest.mark.parametrize(
    ("value", "rendered"),
    [
        (b'{"a": 1}', '{"a": 1}'),
        ("привет".encode(), "привет"),
        (None, "null"),
        (b"\xff\x01", "0xff01"),
        (b"\x00\x00\x00\x07", "0x00000007"),
        (b"two\nlines\tand a tab", "two\\nlines\\tand a tab"),
        (b"red \x1b[31m", "0x726564201b5b33316d"),
        ("\u202eturned".encode(), "\\u202eturned"),
    ],
)
def test_a_line_never_steers_the_terminal(value: bytes | None, rendered: str) -> None:
    assert as_line(LogRecord(b"k", value, 1_700_000_000_123, (), "orders", 2, 9)) == (
        f"2:9\t2023-11-14 22:13:20.123\tk\t{rendered}"
    )


def test_follow_continues_until_it_is_interrupted(tmp_path: Path, log) -> None:
    log.create_topic("orders")
    append(log, "there")
    process = start(tmp_path, "--follow", "--json")
    assert json.loads(process.stdout.readline())["value"] == "there"
    append(log, "comes")
    assert json.loads(process.stdout.readline())["value"] == "comes"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "")


def test_a_reader_that_has_seen_enough_ends_it_quietly(tmp_path: Path, log) -> None:
    log.create_topic("orders")
    append(log, *("x" * 1000 for _ in range(500)))
    process = start(tmp_path, "--from-beginning")
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=30) == 141


def test_a_misspelt_topic_gets_a_suggestion(potok) -> None:
    potok("topics", "create", "orders")
    outcome = potok("consume", "ordrs")
    assert outcome.code == 1
    assert 'did you mean "orders"?' in outcome.err
