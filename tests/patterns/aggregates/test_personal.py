"""Personal fields of the events of aggregates: encrypted in the log, and neither in states nor in results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

import potok
from potok.errors import SetupError, TopologyError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.patterns.aggregates.messages import read_result
from potok.runtime.operations.shadow import shadow_of
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.testing import TestDriver, given

SECRET = "ann@example.org"


@dataclass
class SignUp:
    user_id: str | None
    email: str | None


@dataclass
class Rename:
    email: str


@potok.event("members.signed_up")
@dataclass(frozen=True)
class SignedUp:
    user_id: str | None
    email: Annotated[str | None, potok.personal(subject="user_id")]
    codes: Annotated[list[int], potok.personal(subject="user_id")]


@potok.event("members.renamed")
@dataclass
class Renamed:
    user_id: str
    email: Annotated[str, potok.personal(subject="user_id")]


@potok.aggregate("members", events="member-events")
class Member:
    user_id: str | None = None
    seen: str | None = "nothing"
    renamed: int = 0
    is_forgotten: bool = False

    @potok.command(creates=True)
    def sign_up(self, command: SignUp) -> SignedUp:
        return SignedUp(command.user_id, command.email, [1, 2])

    @potok.command
    def rename(self, command: Rename) -> Renamed:
        return Renamed(self.user_id or "", command.email)

    @potok.applies
    def signed_up(self, event: SignedUp) -> None:
        self.user_id, self.seen = event.user_id, event.email

    @potok.applies
    def was_renamed(self, event: Renamed) -> None:
        self.renamed += event.email is None


@potok.aggregate("members", events="member-events")
class MemberWhoKnows(Member):
    @potok.applies
    def forgotten(self, event: potok.SubjectForgotten) -> None:
        self.is_forgotten = True


def program(cls: type = Member, **options: Any) -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("club")
    builder.aggregate(cls, **options)
    return builder


def sign_up(driver: TestDriver, user: str | None = "ann", email: str | None = SECRET) -> None:
    driver.send("members-commands", {"command": "SignUp", "data": {"user_id": user, "email": email}}, user or "nobody")
    driver.run()


def mails(driver: TestDriver, key: str = "ann") -> list[Any]:
    return [getattr(one.event, "email", None) for one in driver.aggregate(Member).history(key)]


@pytest.mark.parametrize("envelope", ["cloudevents", "cloudevents_binary", "dictionary"])
def test_personal_fields_are_encrypted_in_the_log_and_revealed_in_the_history(envelope: Any) -> None:
    with TestDriver(program(envelope=envelope)) as driver:
        sign_up(driver)
        (written,) = driver.read("member-events")
        assert written.raw_value is not None and SECRET.encode() not in written.raw_value
        assert mails(driver) == [SECRET]
        assert driver.aggregate(Member).history("ann")[0].event == SignedUp("ann", SECRET, [1, 2])
        reading = potok.StreamsBuilder("reading")
        reading.events("member-events", types=[SignedUp]).map_values(lambda e: [e.email, e.codes]).to("mails")
        reader = TestDriver(reading, directory=driver.broker.directory)
        reader.run()
        assert [one.value for one in reader.read("mails")] == [[SECRET, [1, 2]]]
        reader.leave()


def test_states_and_results_do_not_hold_personal_fields() -> None:
    with TestDriver(program()) as driver:
        sign_up(driver)
        assert driver.table("members").get("ann")["state"]["seen"] is None
        (answer,) = driver.read("members-results")
        assert answer.raw_value is not None and SECRET.encode() not in answer.raw_value
        assert answer.value["events"][0]["data"] == {"user_id": "ann", "email": None, "codes": None}
        driver.send("members-commands", {"command": "Rename", "data": {"email": "new@example.org"}}, "ann")
        driver.run()
        assert mails(driver) == [SECRET, "new@example.org"]


@pytest.mark.parametrize("foreign", ["fold", "dead_letter"])
def test_a_forgotten_subject_is_none_in_the_history_and_changes_neither_state_nor_version(foreign: Any) -> None:
    with TestDriver(program(foreign=foreign)) as driver:
        for user in ("ann", "bob"):
            sign_up(driver, user, f"{user}@example.org")
        before = driver.table("members").all()
        assert driver.forget("ann") == ["member-events"]
        driver.run()
        assert driver.table("members").all() == before
        assert (mails(driver), mails(driver, "bob")) == ([None], ["bob@example.org"])
        driver.send("members-commands", {"command": "Rename", "data": {"email": "later"}}, "ann")
        driver.run()
        assert mails(driver) == [None, None]
        shadow = TestDriver(shadow_of(program(foreign=foreign).build()), directory=driver.broker.directory)
        shadow.run(batch_records=1)
        assert shadow.table("members").all() == driver.table("members").all()
        shadow.leave()
        assert driver.dead_letters() == []


@pytest.mark.parametrize("foreign", ["fold", "dead_letter"])
def test_an_aggregate_whose_id_is_the_subject_can_apply_that_it_was_forgotten(foreign: Any) -> None:
    with TestDriver(program(MemberWhoKnows, foreign=foreign)) as driver:
        sign_up(driver)
        driver.forget("ann")
        driver.run()
        assert driver.dead_letters() == []
        row = driver.table("members").get("ann")
        assert (row["version"], row["state"]["is_forgotten"]) == (2, True)


def test_an_event_of_another_writer_is_folded_without_its_personal_fields() -> None:
    data = {"user_id": "ann", "email": SECRET, "codes": [3]}
    with TestDriver(program()) as driver:
        driver.send("member-events", {"event_id": "1", "event_type": "members.signed_up", "data": data}, "ann")
        driver.run()
        assert driver.table("members").get("ann")["state"] == {
            "user_id": "ann",
            "seen": None,
            "renamed": 0,
            "is_forgotten": False,
        }
        assert mails(driver) == [SECRET]


def test_a_personal_field_whose_subject_is_not_named_fails_the_command() -> None:
    with TestDriver(program()) as driver:
        sign_up(driver, None)
        (answer,) = [read_result(one.raw_value or b"") for one in driver.read("members-results")]
        assert (answer.status, answer.version) == ("failed", 0)
        assert 'personal field "email" of members.signed_up has a value, and "user_id" is None' in str(answer.reason)


def test_without_the_key_store_a_history_shows_none(tmp_path: Path) -> None:
    with TestDriver(program(), directory=tmp_path / "log") as driver:
        sign_up(driver)
    with potok.open_aggregate(tmp_path / "log", Member, "club") as members:
        assert [one.event.email for one in members.history("ann")] == [None]
    with potok.open_aggregate(tmp_path / "log", Member, "club", personal_keys=f"{tmp_path}/log.keys") as members:
        assert [one.event.email for one in members.history("ann")] == [SECRET]


def test_personal_fields_need_a_key_store(tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    with pytest.raises(SetupError, match="events with personal fields need the setting personal_keys"):
        prepare(program().build(), broker, Settings(broker=f"file:{tmp_path}"))


def test_a_subject_must_be_a_field_of_the_event() -> None:
    @potok.event("members.broken")
    @dataclass
    class Broken:
        email: Annotated[str, potok.personal(subject="user")]

    @potok.aggregate("broken", events="broken-events")
    class Aggregate:
        n: int = 0

        @potok.applies
        def broken(self, event: Broken) -> None:
            self.n += 1

    with pytest.raises(TopologyError, match='has the subject "user", which is not such a field'):
        program(Aggregate)


def test_scenarios_compare_personal_fields() -> None:
    given(Member).when(SignUp("ann", SECRET)).then(SignedUp("ann", SECRET, [1, 2]), state=Member("ann", None))
    with pytest.raises(AssertionError, match="expected"):
        given(Member).when(SignUp("ann", SECRET)).then(SignedUp("ann", "other", [1, 2]))
