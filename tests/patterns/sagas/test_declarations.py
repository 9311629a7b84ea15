"""Declarations that are not consistent: each error says what, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import potok
from patterns.sagas.checkout import (
    Checkout,
    InventoryReserved,
    OrderCreated,
    PaymentFailed,
    PaymentProcessed,
    PaymentRefunded,
    ProcessPayment,
    RefundPayment,
    program,
)
from potok.errors import TopologyError
from potok.topology.describe import description_of


@dataclass
class NeedsMore:
    order_id: str
    colour: str


@dataclass
class OtherType:
    order_id: str
    amount: str


@potok.event("without.key")
@dataclass
class WithoutKey:
    name: str


def untyped(data: Any):  # type: ignore[no-untyped-def]
    return ProcessPayment(data.order_id, 1.0)


def steps(**attributes: Any) -> type:
    return potok.saga("checkout", by="order_id", starts=OrderCreated)(type("Made", (), attributes))


PAYMENT = potok.step(send=ProcessPayment, ok=PaymentProcessed)


class Nothing(potok.Saga):
    pass


class NoDefault(potok.Saga):
    count: int

    @potok.on(OrderCreated, start=True)
    def created(self, event: OrderCreated) -> None: ...


class Reserved(potok.Saga):
    key: str = ""

    @potok.on(OrderCreated, start=True)
    def created(self, event: OrderCreated) -> None: ...


class WrongArguments(potok.Saga):
    @potok.on(OrderCreated, start=True)
    def created(self) -> None: ...


class TwoHandlers(potok.Saga):
    @potok.on(OrderCreated, start=True)
    def created(self, event: OrderCreated) -> None: ...

    @potok.on(OrderCreated)
    def again(self, event: OrderCreated) -> None: ...


class TwoTimers(potok.Saga):
    @potok.on(OrderCreated, start=True)
    def created(self, event: OrderCreated) -> None: ...

    @potok.on_timer("x")
    def one(self) -> None: ...

    @potok.on_timer("x")
    def two(self) -> None: ...


def handlers(cls: type, **options: Any) -> type:
    return potok.saga("checkout", by="order_id", **options)(type(cls.__name__, (cls,), {}))


WRONG: list[tuple[str, Callable[[], Any]]] = [
    ("has no steps", lambda: program(steps())),
    ("OrderCreated is not a saga", lambda: program(OrderCreated)),
    ("does not say which event starts it", lambda: program(potok.saga("c", by="order_id")(type("X", (), {})))),
    (
        "sends= and emits= are for classes of potok.Saga",
        lambda: program(
            potok.saga("c", by="order_id", starts=OrderCreated, sends=[ProcessPayment])(type("X", (), {"p": PAYMENT}))
        ),
    ),
    (
        'no earlier event has the field "colour" of NeedsMore',
        lambda: program(steps(payment=potok.step(send=NeedsMore, ok=PaymentProcessed))),
    ),
    (
        'field "amount" of OtherType is string, but double in events',
        lambda: program(steps(payment=potok.step(send=OtherType, ok=PaymentProcessed))),
    ),
    (
        "the function does not say which class it returns",
        lambda: program(steps(payment=potok.step(send=untyped, ok=PaymentProcessed))),
    ),
    (
        'event "payment.processed" is used twice',
        lambda: program(steps(a=PAYMENT, b=potok.step(send=ProcessPayment, ok=PaymentProcessed))),
    ),
    (
        'event "without.key" has no field "order_id"',
        lambda: program(steps(payment=potok.step(send=ProcessPayment, ok=WithoutKey))),
    ),
    (
        "NeedsMore is not an event class",
        lambda: program(steps(payment=potok.step(send=ProcessPayment, ok=NeedsMore))),
    ),
    (
        "a step without undo= is not compensated",
        lambda: program(steps(payment=potok.step(send=ProcessPayment, ok=PaymentProcessed, undone=PaymentRefunded))),
    ),
    (
        "undo_failed= needs undone=",
        lambda: potok.step(send=ProcessPayment, ok=PaymentProcessed, undo=RefundPayment, undo_failed=PaymentFailed),
    ),
    ("a timeout must be positive", lambda: potok.step(send=ProcessPayment, ok=PaymentProcessed, timeout="0 s")),
    ("a retry cannot be negative", lambda: potok.retry(-1)),
    ("together takes two or more steps", lambda: potok.together(PAYMENT)),
    (
        'a step of "both" has no name',
        lambda: program(steps(a=PAYMENT, both=potok.together(PAYMENT, potok.step(ok=InventoryReserved)))),
    ),
    ('"a" and "b" are one step|"b" and "a" are one step', lambda: program(steps(a=PAYMENT, b=PAYMENT))),
    (
        'it is not specified when "later" is emitted',
        lambda: program(steps(a=PAYMENT, later=potok.emit(PaymentRefunded))),
    ),
    (
        "two events are emitted at the end completed",
        lambda: program(steps(a=PAYMENT, done=potok.emit(PaymentRefunded), completed=potok.emit(InventoryReserved))),
    ),
    ("a saga needs a name", lambda: potok.saga("", by="order_id", starts=OrderCreated)),
    ('a saga cannot be named "a b"', lambda: potok.saga("a b", by="order_id", starts=OrderCreated)),
    ("the version of a saga", lambda: potok.saga("c", by="order_id", starts=OrderCreated, version=0)),
    ('missing="later" is unknown', lambda: potok.saga("c", by="i", starts=OrderCreated, missing="later")),  # type: ignore[arg-type]
    ('clock="sun" is unknown', lambda: potok.saga("c", by="i", starts=OrderCreated, clock="sun")),  # type: ignore[arg-type]
    ("keep= cannot be negative", lambda: potok.saga("c", by="i", starts=OrderCreated, keep=-1)),
    ("no event starts saga", lambda: program(handlers(Nothing))),
    ("starts= is for sagas of steps", lambda: program(handlers(Nothing, starts=OrderCreated))),
    ('"count" has no default', lambda: program(handlers(NoDefault))),
    ('"key" is an attribute of potok.Saga', lambda: program(handlers(Reserved))),
    ("created cannot be called", lambda: program(handlers(WrongArguments))),
    ("is used twice in saga", lambda: program(handlers(TwoHandlers))),
    ('timer "x" has two handlers', lambda: program(handlers(TwoTimers))),
    ("a timer needs a name", lambda: potok.on_timer("")),
    ("is not an event class", lambda: potok.on("order.created")),  # type: ignore[arg-type]
    ("a saga reads events", lambda: potok.StreamsBuilder("x").saga(Checkout, events=[])),
    ("no topic is named", lambda: potok.StreamsBuilder("x").saga(Checkout, events="events")),
    ('there is no envelope "letter"', lambda: program(envelope="letter")),
    ("has two definitions of version 1", lambda: program(earlier=[Checkout])),
]


@pytest.mark.parametrize(("text", "build"), WRONG, ids=[text for text, _ in WRONG])
def test_a_declaration_that_is_not_consistent_is_an_error(text: str, build: Callable[[], Any]) -> None:
    with pytest.raises(TopologyError, match=text.replace("[", r"\[")) as caught:
        build()
    assert caught.value.hint
    assert caught.value.at is not None and caught.value.at.file.endswith(".py")


def test_describe_and_explain_show_the_steps_of_a_saga() -> None:
    summary = "by order_id, version 1: payment (timeout 15m, 2 retries, undo RefundPayment), stock (undo ReleaseItems)"
    assert f"saga checkout: {summary}" in program().describe()
    topology = program().build()
    (step,) = [step for step in description_of(topology)["steps"] if step["kind"] == "saga"]
    assert step["reason"] == f"a saga runs as Python; {summary}"
