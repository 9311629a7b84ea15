"""What a message about a query says to type repairs the query, typed as it stands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.examples.test_commands_in_messages import commands

from cli.conftest import Potok
from cli.shop import HOUR, write_program
from operators.core.in_process import InProcess
from potok.cli.queries.program import load_topology
from potok.errors import PotokError
from potok.state.lmdb.environment import close_environment

USERS = "abcdefgh"


@pytest.fixture
def program(tmp_path: Path) -> str:
    return write_program(tmp_path / "programs")


@pytest.fixture
def data(tmp_path: Path, program: str) -> Path:
    """A log in which the query of the shop has run over an order of each user."""
    send(tmp_path / "data", program)
    return tmp_path / "data"


def send(data: Path, program: str, state: str | None = None) -> None:
    with InProcess(load_topology(program), directory=data, state=state) as driver:
        for number, user in enumerate(USERS):
            driver.send("orders", {"user_id": user, "amount": 1.0, "items": []}, user, timestamp=HOUR + number)
        driver.run()


def failure(work: Callable[[], object]) -> str:
    with pytest.raises(PotokError) as caught:
        work()
    return str(caught.value)


def type_in(potok: Potok, message: str, words: Mapping[str, str], *wanted: str) -> None:
    """Type those commands of a message that begin as wanted, with what stands for the words in capitals."""
    named = [[words.get(word, word) for word in command] for command in commands(" ".join(message.split()))]
    for beginning in wanted:
        command, *others = [each for each in named if shlex.join(each).startswith(beginning)]
        assert all(other == command for other in others)
        answer = potok(*command, stdin="y\n" * 5)
        assert answer.code == 0, (command, answer.err)


def counts(potok: Potok) -> set[str]:
    return {potok("tables", "get", "order_counts", user).out.strip() for user in USERS}


def break_state(data: Path) -> None:
    """Overwrite the rows of every shard, behind the pages that a file begins with."""
    for shard in (data / "queries" / "shop" / "state").rglob("data.mdb"):
        close_environment(shard.parent)
        size = shard.stat().st_size
        with shard.open("r+b") as file:
            file.seek(8192)
            file.write(b"\xa5" * (size - 8192))


def test_a_backup_takes_the_place_of_damaged_state(potok: Potok, data: Path, program: str) -> None:
    assert potok("state", "backup", "shop", "--to", "copy").code == 0
    break_state(data)
    verified = potok("state", "verify", "shop")
    assert verified.code == 1
    type_in(potok, verified.err, {"BACKUP": "copy", "QUERY": "shop"}, "state restore copy --force")
    assert counts(potok) == {"1"}
    assert potok("state", "verify", "shop").code == 0


def test_damaged_state_is_computed_again_from_the_log(potok: Potok, data: Path, program: str) -> None:
    break_state(data)
    message = potok("tables", "get", "order_counts", "a").err
    type_in(potok, message, {"QUERY": "shop"}, "offsets reset shop --to earliest --drop-state")
    send(data, program)
    assert counts(potok) == {"2"}


def test_a_query_whose_topic_was_replaced_starts_over(potok: Potok, data: Path, program: str) -> None:
    assert potok("topics", "delete", "orders", "--yes").code == 0
    assert potok("topics", "create", "orders").code == 0
    type_in(potok, failure(lambda: send(data, program)), {}, "offsets reset shop --forget")
    send(data, program)
    assert counts(potok) == {"1"}


def test_state_moves_to_another_place(potok: Potok, data: Path, program: str, tmp_path: Path) -> None:
    elsewhere = f"file:{tmp_path / 'elsewhere'}"
    message = failure(lambda: send(data, program, elsewhere))
    type_in(potok, message, {"DIR": "copy"}, "state backup shop --to copy", "state restore copy --state")
    send(data, program, elsewhere)
    assert counts(potok) == {"2"}


def test_a_program_without_a_shadow_builds_one(potok: Potok, data: Path, program: str) -> None:
    message = potok("promote", program).err
    assert ["run", "PROGRAM", "--shadow"] in list(commands(" ".join(message.split())))
