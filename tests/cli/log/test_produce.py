from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from potok.cli.log.produce import BadLine, LineForm, line_blocks
from potok.errors import Location

HERE = Location("lines", 7)


def values(potok, topic: str = "orders") -> list[object]:
    return [record["value"] for record in potok("consume", topic, "--from-beginning", "--json").objects]


@pytest.fixture
def lines(potok, tmp_path: Path):
    """Writes a file of lines and appends it to the topic "orders" with some options."""
    potok("topics", "create", "orders")

    def produce(text: str, *options: str):
        (tmp_path / "lines").write_text(text)
        return potok("produce", "orders", "lines", *options)

    return produce


def test_each_line_becomes_a_record(potok, lines) -> None:
    result = lines("one\ntwo\r\n\nlast without an end")
    assert result.err == 'appended 4 records to "orders"\n'
    assert values(potok) == ["one", "two", "", "last without an end"]


def test_json_says_how_many(lines) -> None:
    assert lines("one\ntwo\n", "--json").objects == [{"topic": "orders", "records": 2, "position": "orders:0:2"}]


def test_key_time_and_headers_are_kept(potok, lines) -> None:
    text = '{"user": "anna", "at": "2024-01-02T03:04:05Z"}\n'
    lines(text, "--key-field", "user", "--timestamp-field", "at", "--header", "from=test", "--header", "empty=")
    (record,) = potok("consume", "orders", "--json").objects
    assert (record["key"], record["timestamp"]) == ("anna", 1_704_164_645_000)
    assert record["headers"] == {"from": "test", "empty": ""}


@pytest.mark.parametrize(
    ("good", "bad", "options"),
    [
        ('{"user": "a"}', "not json", ("--key-field", "user")),
        ('{"at": 1}', '{"at": "soon"}', ("--timestamp-field", "at")),
        ('{"at": 1}', '{"at": NaN}', ("--timestamp-field", "at")),
        ('{"at": 1}', '{"at": 1e300}', ("--timestamp-field", "at")),
        ("a:1", "b", ("--key-separator", ":")),
    ],
)
def test_all_lines_of_a_file_are_checked_before_one_is_appended(
    potok, lines, good: str, bad: str, options: tuple[str, str]
) -> None:
    many = f"{good}\n" * 300_000  # more than one block
    result = lines(f"{many}{bad}\n{good}\n", *options)
    assert result.code == 1
    assert "  at lines:300001" in result.err
    assert "appended" not in result.err
    assert values(potok) == []
    assert lines(f"{good}\n{good}\n", *options).code == 0
    assert len(values(potok)) == 2


def test_a_file_that_is_refused_makes_no_topic(potok, lines) -> None:
    assert lines("bad\n", "--timestamp-field", "at").code == 1
    (Path("lines")).write_text("bad\n")
    assert potok("produce", "fresh", "lines", "--timestamp-field", "at").code == 1
    assert "fresh" not in potok("topics", "list").out


def test_lines_of_a_pipe_are_appended_up_to_a_bad_one_and_the_rest_can_follow(potok, lines, tmp_path: Path) -> None:
    potok("topics", "create", "piped")
    text = '{"at": 1}\n{"at": 2}\n{"when": 3}\n{"at": 4}\n'
    command = [sys.executable, "-c", "from potok.cli.main import main; main()", "produce", "piped"]

    def pipe(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        options = ("--timestamp-field", "at", *options)
        return subprocess.run(
            [*command, *options], input=text, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    nothing = pipe('{"when": 3}\n')
    assert (nothing.returncode, "--skip" in nothing.stderr) == (1, False)
    first = pipe(text)
    assert first.returncode == 1
    assert 'appended 2 records to "piped"' in first.stderr
    assert "  at stdin:3" in first.stderr and "--skip 2 skips them" in " ".join(first.stderr.split())
    again = pipe(text.replace("when", "at"), "--skip", "2")
    assert (again.returncode, 'appended 2 records to "piped"' in again.stderr) == (0, True)
    records = potok("consume", "piped", "--from-beginning", "--json").objects
    assert [record["timestamp"] for record in records] == [1, 2, 3, 4]


def test_a_file_that_is_stdin_is_checked_too(potok, tmp_path: Path) -> None:
    potok("topics", "create", "redirected")
    (tmp_path / "lines").write_text('{"at": 1}\n{}\n')
    command = [sys.executable, "-c", "from potok.cli.main import main; main()", "produce", "redirected"]
    with (tmp_path / "lines").open() as stdin:
        done = subprocess.run(
            [*command, "--timestamp-field", "at"],
            stdin=stdin,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, "at stdin:2" in done.stderr) == (1, True)
    assert values(potok, "redirected") == []


def test_a_topic_that_does_not_exist_is_created_and_that_is_said(potok, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\n")
    result = potok("produce", "new", "lines")
    assert result.code == 0
    assert 'created topic "new"' in result.err
    assert [record["value"] for record in potok("consume", "new", "--json").objects] == ["one"]


def test_a_file_that_does_not_exist_is_an_error(potok) -> None:
    potok("topics", "create", "orders")
    assert 'cannot read "missing"' in potok("produce", "orders", "missing").err


def test_a_header_without_a_name_is_wrong_usage(lines) -> None:
    assert lines("one\n", "--header", "=x").code == 2


def test_a_partition_can_be_chosen(potok, tmp_path: Path) -> None:
    potok("topics", "create", "wide", "--partitions", "3")
    (tmp_path / "lines").write_text("a\nb\nc\n")
    potok("produce", "wide", "lines", "--partition", "2")
    assert {record["partition"] for record in potok("consume", "wide", "--json").objects} == {2}


@pytest.mark.parametrize(
    ("form", "line", "key", "value"),
    [
        (LineForm(), b"a:b", None, b"a:b"),
        (LineForm(key_separator=b":"), b"a:b:c", b"a", b"b:c"),
        (LineForm(key_separator=b":", null=b"NULL"), b"a:NULL", b"a", None),
        (LineForm(key_field="n"), b'{"n": 5}', b"5", b'{"n": 5}'),
        (LineForm(key_field="n"), b'{"n": null}', None, b'{"n": null}'),
        (LineForm(key_field="n"), b'{"n": {"a": 1}}', b'{"a":1}', b'{"n": {"a": 1}}'),
        (LineForm(), b"\xff\x00", None, b"\xff\x00"),
    ],
)
def test_a_line_is_taken_apart(form: LineForm, line: bytes, key: bytes | None, value: bytes | None) -> None:
    record = form.record(line, HERE)
    assert (record.key, record.value) == (key, value)


@pytest.mark.parametrize(
    ("text", "timestamp_ms"),
    [
        ("1700000000123", 1_700_000_000_123),
        ('"2024-01-02"', 1_704_153_600_000),
        ('"2024-01-02T01:00+01:00"', 1_704_153_600_000),
    ],
)
def test_a_time_is_milliseconds_or_iso_8601(text: str, timestamp_ms: int) -> None:
    record = LineForm(timestamp_field="at").record(b'{"at": %s}' % text.encode(), HERE)
    assert record.timestamp_ms == timestamp_ms


@pytest.mark.parametrize(
    ("form", "line", "message"),
    [
        (LineForm(key_separator=b"|"), b"a:b", 'no "|" in the line'),
        (LineForm(key_field="n"), b"{", "not JSON"),
        (LineForm(key_field="n"), b"\xff", "not JSON"),
        (LineForm(key_field="n"), b"[1]", "not a JSON object"),
        (LineForm(key_field="n"), b'{"m": 1}', 'no field "n"'),
        (LineForm(timestamp_field="t"), b'{"t": "soon"}', '"soon" is not a time'),
        (LineForm(timestamp_field="t"), b'{"t": true}', "true is not a time"),
    ],
)
def test_a_line_of_another_form_is_refused(form: LineForm, line: bytes, message: str) -> None:
    with pytest.raises(BadLine) as raised:
        form.record(line, HERE)
    assert message in raised.value.message
    assert raised.value.at == HERE


def test_lines_of_a_pipe_come_out_before_it_ends() -> None:
    reading, writing = os.pipe()
    blocks = line_blocks(reading)
    os.write(writing, b"one\ntw")
    assert next(blocks) == [b"one"]
    os.write(writing, b"o\nthree\n")
    assert next(blocks) == [b"two", b"three"]
    os.write(writing, b"end")
    os.close(writing)
    assert list(blocks) == [[b"end"]]
    os.close(reading)


def test_a_name_that_is_nearly_that_of_another_topic_is_questioned(potok, lines, tmp_path: Path) -> None:
    lines("one\n")
    result = potok("produce", "ordrs", "lines")
    assert result.code == 0
    assert 'created topic "ordrs"' in result.err
    assert 'warning: did you mean "orders"?' in result.err
    assert "potok topics delete ordrs" in result.err


def test_a_name_of_its_own_is_not_questioned(potok, lines) -> None:
    lines("one\n")
    assert "did you mean" not in potok("produce", "payments", "lines").err


def test_a_topic_can_be_demanded(potok, lines) -> None:
    lines("one\n")
    result = potok("produce", "ordrs", "lines", "--no-create")
    assert result.code == 1
    assert 'there is no topic "ordrs"' in result.err
    assert 'did you mean "orders"?' in result.err
    assert [topic["topic"] for topic in potok("topics", "list", "--json").objects] == ["orders"]
    assert potok("produce", "orders", "lines", "--no-create").code == 0
