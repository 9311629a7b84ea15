"""Sagas as classes of handlers: state, timers, and what they send."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import potok
from patterns.sagas.checkout import key_of
from potok.testing import TestDriver, given


@potok.event("order.delivered")
@dataclass
class OrderDelivered:
    order_id: str
    user_id: str


@potok.event("review.written")
@dataclass
class ReviewWritten:
    order_id: str
    stars: int


@potok.event("review.closed")
@dataclass
class ReviewClosed:
    order_id: str
    reminders: int


@dataclass
class AskForReview:
    order_id: str
    user_id: str


@dataclass
class Apologise:
    order_id: str


@potok.saga("review", by="order_id", sends=[AskForReview, Apologise], emits=[ReviewClosed])
class Review(potok.Saga):
    user_id: str = ""
    reminders: int = 0
    stars: list[int] = []

    @potok.on(OrderDelivered, start=True)
    def delivered(self, event: OrderDelivered) -> None:
        self.user_id = event.user_id
        self.ask()

    def ask(self) -> None:
        self.send(AskForReview(self.key, self.user_id))
        self.set_timer("reminder", "3 days")

    @potok.on_timer("reminder")
    def remind(self) -> None:
        self.reminders += 1
        if self.user_id == "nobody":
            self.send(Apologise(self.key))
            raise LookupError("who is that?")
        if self.reminders == 3:
            self.abort("no answer")
        else:
            self.ask()

    @potok.on(ReviewWritten)
    def written(self, event: ReviewWritten) -> None:
        if event.stars < 0:
            self.stars.append(event.stars)
            self.send(Apologise(self.key))
            raise ValueError("fewer than no stars")
        self.stars.append(event.stars)
        self.emit(ReviewClosed(self.key, self.reminders))
        self.complete()

    def on_abort(self) -> None:
        self.send(Apologise(self.key))


DELIVERED, ASKED = OrderDelivered("o1", "ann"), AskForReview("o1", "ann")


def test_handlers_send_and_keep_state_and_time_passes() -> None:
    (
        given(Review, DELIVERED)
        .then(sent=[ASKED], state="running")
        .after("3 days")
        .then(sent=[ASKED])
        .when(ReviewWritten("o1", 4))
        .then(sent=[], emitted=[ReviewClosed("o1", 1)], state="completed")
        .after("6 days")
        .then(sent=[], state="completed")
    )


def test_a_timer_can_end_an_instance() -> None:
    given(Review, DELIVERED).after("9 days").then(sent=[ASKED, ASKED], state="aborted")


def test_events_of_an_ended_instance_are_noted() -> None:
    given(Review, DELIVERED, ReviewWritten("o1", 4)).when(ReviewWritten("o1", 5)).then(
        sent=[], emitted=[], state="completed"
    )


def test_an_event_whose_handler_raises_is_a_dead_letter_and_has_no_effect() -> None:
    (
        given(Review, DELIVERED)
        .when(ReviewWritten("o1", -1))
        .then(sent=[], state="running", dead_letters=1)
        .when(ReviewWritten("o1", 3))
        .then(emitted=[ReviewClosed("o1", 0)], state="completed")
    )


def test_a_timer_whose_handler_raises_makes_the_instance_stuck_and_can_be_retried() -> None:
    story = given(Review, OrderDelivered("o1", "nobody")).after("3 days").then(sent=[], state="stuck", dead_letters=1)
    story.operator("retry").then(sent=[], state="stuck", dead_letters=1)
    given(Review, OrderDelivered("o1", "nobody")).after("3 days").operator("skip").when(ReviewWritten("o1", 3)).then(
        emitted=[ReviewClosed("o1", 0)], state="completed", dead_letters=1
    )


def test_an_instance_that_is_aborting_goes_on_with_that_when_its_timer_is_retried() -> None:
    @potok.saga("refund", by="order_id", sends=[Apologise])
    class Refund(potok.Saga):
        tries: int = 0

        @potok.on(OrderDelivered, start=True)
        def delivered(self, event: OrderDelivered) -> None:
            self.compensate("damaged")
            self.set_timer("apology", "1 h")

        @potok.on(ReviewWritten)
        def written(self, event: ReviewWritten) -> None:
            self.tries += 1

        @potok.on_timer("apology")
        def apologise(self) -> None:
            self.send(Apologise(self.key))
            if not self.tries:
                raise LookupError("nobody there")

    story = given(Refund, DELIVERED).after("1 h").then(sent=[], state="stuck", dead_letters=1)
    story.when(ReviewWritten("o1", 4)).operator("retry").then(sent=[Apologise("o1")], state="aborting")
    given(Refund, DELIVERED).after("1 h").operator("skip").then(sent=[], state="aborting", dead_letters=1)


def test_a_timer_that_would_remove_its_instance_is_refused() -> None:
    @potok.saga("refused", by="order_id")
    class Refused(potok.Saga):
        @potok.on(OrderDelivered, start=True)
        def delivered(self, event: OrderDelivered) -> None: ...

        @potok.on_timer("forget")
        def forget(self) -> None: ...

    with pytest.raises(potok.TopologyError, match='a timer cannot be called "forget"'):
        potok.StreamsBuilder("refused").saga(Refused, events="events", commands="commands")


def test_an_operator_can_abort_it_and_a_handler_compensates() -> None:
    given(Review, DELIVERED).operator("abort").then(sent=[Apologise("o1")], state="aborted")


def test_instances_do_not_share_state_and_keys_name_the_handler() -> None:
    builder = potok.StreamsBuilder("reviews")
    builder.saga(Review, events="events", commands="commands", emits="out")
    with TestDriver(builder) as driver:
        for order in ("o1", "o2"):
            data = {"order_id": order, "user_id": "ann"}
            driver.send("events", {"event_id": order, "event_type": "order.delivered", "data": data})
        driver.run()
        driver.restart()
        driver.wait("3 days")
        written = {"event_id": "w", "event_type": "review.written", "data": {"order_id": "o1", "stars": 2}}
        driver.send("events", written)
        driver.run()
        instances = driver.table("review.instances")
        assert instances.get("o1")["data"] == {"user_id": "ann", "reminders": 1, "stars": [2]}
        assert instances.get("o2")["data"] == {"user_id": "ann", "reminders": 1, "stars": []}
        keys = sorted(key_of(record) for record in driver.read("commands"))
        assert keys == ["review/o1/delivered/1", "review/o1/remind/1", "review/o2/delivered/1", "review/o2/remind/1"]


def test_an_event_for_no_instance_is_a_dead_letter() -> None:
    given(Review).when(ReviewWritten("o1", 4)).then(state=None, dead_letters=1)


def test_what_a_handler_must_not_do_is_a_dead_letter_that_says_so() -> None:
    @potok.saga("bad", by="order_id")
    class Bad(potok.Saga):
        kept: object = None

        @potok.on(OrderDelivered, start=True)
        def delivered(self, event: OrderDelivered) -> None:
            if event.user_id == "timer":
                self.set_timer("later", "1 h")
            elif event.user_id == "state":
                self.kept = object()
            else:
                self.send(Apologise(self.key))

    builder = potok.StreamsBuilder("bad")
    builder.saga(Bad, events="events")
    with TestDriver(builder) as driver:
        for what in ("timer", "state", "message"):
            data = {"order_id": what, "user_id": what}
            driver.send("events", {"event_id": what, "event_type": "order.delivered", "data": data})
        driver.run()
        errors = [letter.error for letter in driver.dead_letters()]
    assert any('no method is marked @potok.on_timer("later"); there are: none' in error for error in errors)
    assert any('"Apologise" is not declared as a message of this saga' in error for error in errors)
    assert any("StateNotData" in error for error in errors) and len(errors) == 3
