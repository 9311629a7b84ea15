"""Paths of another user, of a user without a home, or that lead in a circle, are an error of ours wherever one is
named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from potok.cli.checks.doctor import examine
from potok.cli.prompt.input.keyboard import history_file
from potok.cli.queries.program import load_topology
from potok.dsl.builder import StreamsBuilder
from potok.errors import PotokError
from potok.events.personal.key_store import open_key_store
from potok.log.kafka.options import KafkaOptions
from potok.log.open import open_broker
from potok.settings import Settings

PLACES: dict[str, Callable[[str], object]] = {
    "log": lambda path: open_broker(f"file:{path}"),
    "home of Kafka": lambda path: KafkaOptions(("host:9092",), home=f"file:{path}").home_path,
    "keys": open_key_store,
    "cache": lambda path: Settings(cache_dir=path).cache_path,
    "program": load_topology,
    "sink": lambda path: StreamsBuilder("q").stream("t", value="n int").to_files(path),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("path", ["~nobody-of-this-name/x.py", "circle/x.py"])
def test_a_path_that_leads_nowhere_is_named(
    place: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(PotokError) as caught:
        PLACES[place](path)
    assert path in str(caught.value) and caught.value.hint


def test_the_doctor_goes_on_when_the_log_has_no_directory() -> None:
    findings = {finding.what: finding for finding in examine(Settings(broker="file:~nobody-of-this-name/x"))}
    assert findings["data"].status == "fail" and "nobody-of-this-name" in findings["data"].detail


def test_a_user_without_a_home_is_told_so_and_has_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 3_999_999)
    with pytest.raises(PotokError, match="the home directory"):
        _ = Settings().cache_path
    assert type(history_file()).__name__ == "InMemoryHistory"
