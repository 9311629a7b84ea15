"""`potok forget`, also when it is killed between its steps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

import potok as api
from potok.events.personal.key_store import open_key_store
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.testing import TestDriver

COMMAND = "from potok.cli.entry import main; main()"


@api.event("forget.noted")
@dataclass
class Noted:
    user_id: str
    text: Annotated[str, api.personal(subject="user_id")]


def build() -> api.StreamsBuilder:
    builder = api.StreamsBuilder("notes")
    builder.stream("in", value="user_id string, text string").to("notes", envelope="cloudevents", event=Noted)
    return builder


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with an event of ann; the keys are in `data.keys`."""
    with TestDriver(build(), directory=tmp_path / "data") as driver:
        driver.send("in", {"user_id": "ann", "text": "a secret"}, key="ann")
        driver.run()
    return tmp_path / "data"


def events(log: Path) -> list[bytes]:
    with closing(EmbeddedBroker(log)) as broker:
        ends = broker.end_offsets("notes")
        batches = [batch for part, end in ends.items() for batch in broker.read("notes", part, 0, end)]
        return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_the_key_is_deleted_and_the_topics_get_an_event(potok: Any, log: Path) -> None:
    result = potok("forget", "ann", "--keys", f"{log}.keys", "--json")
    assert result.objects == [{"subject": "ann", "topics": ["notes"]}]
    assert b'"data":{"subject":"ann"}' in events(log)[1]
    again = potok("forget", "ann", "--keys", f"{log}.keys")
    assert (again.code, "its topics already contain it" in again.err) == (0, True)
    assert len(events(log)) == 2


@pytest.mark.usefixtures("log")
def test_a_subject_without_a_key_and_a_missing_setting_are_errors(potok: Any, log: Path) -> None:
    unknown = potok("forget", "nobody", "--keys", f"{log}.keys")
    assert (unknown.code, 'nothing was encrypted for subject "nobody"' in unknown.err) == (1, True)
    unset = potok("forget", "ann")
    assert (unset.code, "set personal_keys in potok.toml" in unset.err) == (1, True)


@pytest.mark.kill
@pytest.mark.parametrize("point", ["key-deleted", "subject-announced"])
def test_a_killed_command_is_finished_by_the_next_one(potok: Any, log: Path, point: str) -> None:
    environment = {**os.environ, "POTOK_FAILPOINT": point, "POTOK_PERSONAL_KEYS": f"{log}.keys"}
    words = [sys.executable, "-c", COMMAND, "forget", "ann", "--broker", f"file:{log}"]
    killed = subprocess.run(words, env=environment, capture_output=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    keys = open_key_store(f"{log}.keys")
    assert keys.for_writing(["ann"], "notes")["ann"].key is None
    assert len(events(log)) == (1 if point == "key-deleted" else 2)
    assert potok("forget", "ann", "--keys", f"{log}.keys").code == 0
    assert len(events(log)) == 2
    assert keys.unannounced() == []
