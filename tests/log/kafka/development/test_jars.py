from __future__ import annotations

import json
import threading
import zipfile
from pathlib import Path

import pytest

from potok.log.kafka.development import ivy, jars
from potok.log.kafka.development.jars import KNOWN_CONNECTOR, SERVER, Bundle, Module, cached, connector_jars, fetch
from potok.log.kafka.errors import JarsNotFound

BUNDLE = Bundle("a thing", "thing-1", (Module("org.example", "thing", "1"),))


class Central:
    """Stands in for Ivy: puts jars into the target, as many times as it is asked."""

    def __init__(self, *missing: str) -> None:
        self.asked: list[str] = []
        self._missing = missing

    def __call__(self, title: str, ivy_file: str, target: Path, jar: Path, progress: object) -> None:
        self.asked.append(ivy_file)
        if any(name in ivy_file for name in self._missing):
            raise JarsNotFound(title, "not there", "")
        target.mkdir(parents=True)
        for name in ("one-1.jar", "two-1.jar"):
            with zipfile.ZipFile(target / name, "w") as archive:
                archive.writestr("content", name * 100)


@pytest.fixture
def central(monkeypatch: pytest.MonkeyPatch) -> Central:
    stand_in = Central()
    monkeypatch.setattr(jars, "retrieve", stand_in)
    return stand_in


def test_jars_are_fetched_once(central: Central, tmp_path: Path) -> None:
    found = fetch(BUNDLE, tmp_path)
    assert [path.name for path in found] == ["one-1.jar", "two-1.jar"]
    assert fetch(BUNDLE, tmp_path) == found
    assert len(central.asked) == 1
    assert {path.name for path in (tmp_path / "jars").iterdir()} == {"thing-1", "thing-1.lock"}


@pytest.mark.parametrize("damage", ["changed", "short", "gone", "no list", "bad list"])
def test_jars_that_are_no_longer_whole_are_fetched_again(central: Central, tmp_path: Path, damage: str) -> None:
    first, _ = fetch(BUNDLE, tmp_path)
    whole = first.read_bytes()
    match damage:
        case "changed":
            first.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        case "short":
            first.write_bytes(whole[:-1])
        case "gone":
            first.unlink()
        case "no list":
            (first.parent / "jars.json").unlink()
        case "bad list":
            (first.parent / "jars.json").write_text("{")
    assert cached(BUNDLE, tmp_path) == []
    assert fetch(BUNDLE, tmp_path)[0].read_bytes() == whole
    assert len(central.asked) == 2


def test_what_is_not_a_jar_is_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def page(title: str, ivy_file: str, target: Path, jar: Path, progress: object) -> None:
        target.mkdir(parents=True)
        (target / "one-1.jar").write_text("<html>log in to the wireless network</html>")

    monkeypatch.setattr(jars, "retrieve", page)
    with pytest.raises(JarsNotFound, match=r"one-1\.jar arrived damaged"):
        fetch(BUNDLE, tmp_path)
    assert {path.name for path in (tmp_path / "jars").iterdir()} == {"thing-1.lock"}


def test_two_that_fetch_at_once_fetch_once(central: Central, tmp_path: Path) -> None:
    found: list[list[Path]] = []
    threads = [threading.Thread(target=lambda: found.append(fetch(BUNDLE, tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(central.asked) == 1
    assert all(paths == found[0] for paths in found)


def test_a_cache_that_cannot_be_written_is_named_with_the_setting(central: Central, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JarsNotFound, match="POTOK_CACHE_DIR"):
        fetch(BUNDLE, tmp_path / "file")


def test_the_connector_of_the_spark_at_hand_comes_first(central: Central, tmp_path: Path) -> None:
    connector_jars(tmp_path)
    (asked,) = central.asked
    assert f'rev="{jars.importlib.metadata.version("pyspark")}"' in asked
    assert "commons-pool2" in asked.partition("<exclude")[2]


def test_the_connector_that_is_known_to_work_is_the_second_choice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    central = Central(f'rev="{jars.importlib.metadata.version("pyspark")}"')
    monkeypatch.setattr(jars, "retrieve", central)
    first = connector_jars(tmp_path)
    assert first[0].parent.name == KNOWN_CONNECTOR.name
    assert len(central.asked) == 2
    assert connector_jars(tmp_path) == first
    assert len(central.asked) == 2


def test_no_connector_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jars, "retrieve", Central("spark-sql-kafka"))
    with pytest.raises(JarsNotFound):
        connector_jars(tmp_path)


def test_a_module_alone_comes_without_what_it_needs() -> None:
    assert jars._ivy_file(KNOWN_CONNECTOR).count('transitive="false"') == 4
    assert 'transitive="true"' in jars._ivy_file(SERVER)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("Server access error at url x (java.net.UnknownHostException: central)", "did not answer"),
        ("java.net.ConnectException: refused", "JAVA_TOOL_OPTIONS"),
        ("(javax.net.ssl.SSLHandshakeException: PKIX path building failed)", "keytool"),
        ("\t\tmodule not found: org.apache.spark#thing;9.9", "has no org.apache.spark:thing:9.9"),
        ("java.io.IOException\nNo space left on device", "No space left on device"),
    ],
)
def test_errors_of_ivy_are_reported_with_a_hint(said: str, message: str) -> None:
    assert message in str(ivy._explained("a thing", said))


def test_progress_counts_jars_and_bytes() -> None:
    lines: list[str] = []
    counter = ivy._Counter("a thing", lines.append)
    for line in ("... (1500kB)\n", ".. (0kB)\n", "\t[SUCCESSFUL ] a#b;1!b.jar(bundle) (7ms)\n"):
        counter.hear(line)
    assert lines[0].endswith("resolving its dependencies")
    assert lines[1].endswith("1 jars, 1.5 MB (b.jar)")


@pytest.mark.kafka
def test_the_jars_of_the_server_in_the_cache_are_whole(kafka: object) -> None:
    from potok.settings import Settings

    found = cached(SERVER, Settings.load().cache_path)
    names = json.loads((found[0].parent / jars.MANIFEST).read_text())
    assert {"kafka_2.13-3.9.1.jar", "kafka-clients-3.9.1.jar"} <= set(names)
    assert len(found) == len(names)


def test_a_program_that_says_nothing_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ivy, "_SILENCE", 0.0)
    code, said = ivy._run(["sleep", "600"], ivy._Counter("a thing", None))
    assert code != 0
    assert "did not answer" in str(ivy._explained("a thing", said))
