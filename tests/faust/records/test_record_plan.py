"""Record classes that say more of their fields, and read plain data in their own way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.faust.records.field_kinds import BooleanField, DecimalField, FloatField, IntegerField, StringField
from potok.faust.records.values import schema_of, value_encoder


class Choice(faust.FieldDescriptor):
    def __init__(self, choices: list[str], **options: Any) -> None:
        super().__init__(choices=choices, **options)

    def validate(self, value: Any) -> Iterable[faust.ValidationError]:
        if value not in self.options["choices"]:
            yield self.validation_error(f"{value} is none of the choices")


class Order(faust.Record, validation=True):
    name: str = StringField(max_length=5, trim_whitespace=True)
    state: str = Choice(["new", "paid"], default="new")
    count: int = IntegerField(min_value=1, max_value=9, required=False, default=1)
    price: Decimal = DecimalField(max_digits=4, max_decimal_places=2, default=Decimal(0))
    secret: str = StringField(exclude=True, default="x")
    kind: str = StringField(input_name="type", output_name="type", default="plain")


def test_fields_have_constraints_and_all_violations_are_reported() -> None:
    assert Order.from_data({"name": " ann "}).name == "ann"
    assert Order(name="ann").state == "new"
    with pytest.raises(faust.ValidationError) as caught:
        Order.from_data({"name": "much too long", "state": "lost", "count": 10, "price": "100.123"})
    for text in ("is longer than 5", "none of the choices", "10 is more than 9", "more than 2 decimal places"):
        assert text in str(caught.value)
    with pytest.raises(faust.ValidationError, match="may not be empty"):
        Order(name="")


def test_fields_have_other_names_outside_and_some_stay_inside() -> None:
    order = Order.from_data({"name": "ann", "type": "gift"})
    assert order.kind == "gift"
    written = value_encoder("json", Order)(order)
    assert written is not None and b"secret" not in written and b'"type":"gift"' in written
    assert order.asdict()["secret"] == "x"


class Loose(faust.Record):
    ratio: float = FloatField(max_value=1.0, default=0.0)
    ready: bool = BooleanField(default=False)


def test_without_validation_a_record_is_checked_when_asked() -> None:
    record = Loose.from_data({"ratio": 2.0})
    assert not record.is_valid()
    assert "2.0 is more than 1.0" in str(record.validation_errors[0])
    with pytest.raises(faust.ValidationError):
        record.validate_or_raise()


class Coerced(faust.Record, coerce=True, coercions={str: lambda value: f"<{value}>"}):
    count: int
    text: str


class Dated(faust.Record, date_parser=lambda text: datetime.strptime(text, "%d.%m.%Y").replace(tzinfo=UTC)):
    at: datetime


def test_values_are_read_by_functions_of_the_class() -> None:
    assert Coerced.from_data({"count": "3", "text": "a"}) == Coerced(3, "<a>")
    assert Dated.from_data({"at": "31.12.2025"}).at == datetime(2025, 12, 31, tzinfo=UTC)


class Animal(faust.Record, abstract=True, polymorphic_fields=True):
    name: str


class Dog(Animal, namespace="dog", include_metadata=True):
    barks: bool = True


class Owner(faust.Record, polymorphic_fields=True):
    pet: Animal


def test_abstract_classes_are_not_instantiated_and_the_namespace_selects_the_class() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Animal("x")
    written = value_encoder("json", Owner)(Owner(Dog("rex")))
    assert written is not None and b'"ns":"dog"' in written
    assert isinstance(Owner.loads(written).pet, Dog)


class Checked(faust.Record, validation=True):
    count: int
    double: int = 0

    def __post_init__(self) -> None:
        self.double = self.count * 2


def test_validation_leaves_what_a_class_does_itself() -> None:
    assert Checked(2).double == 4
    with pytest.raises(faust.ValidationError):
        Checked("two", 3)  # type: ignore[arg-type]


def test_a_record_is_written_and_read_by_itself() -> None:
    order = Order(name="ann", price=Decimal("1.5"))
    assert Order.loads(order.dumps() or b"").price == Decimal("1.5")


class Stated(faust.Record):
    state: Literal["new", "paid"] | None = None


class Colour(Enum):
    RED = "red"


class Collected(faust.Record):
    by_name: Mapping[str, Loose]
    several: Sequence[Loose]
    pair: tuple[int, str]
    colour: Colour
    state: Literal["new", "paid"] = "new"
    span: timedelta = timedelta(0)
    at: time | None = None


def test_maps_sequences_pairs_choices_and_spans_are_read() -> None:
    data = {
        "by_name": {"a": {"ratio": 0.5}},
        "several": [{"ratio": 0.25}],
        "pair": [1, "x"],
        "colour": "red",
        "span": 1.5,
        "at": "10:30",
    }
    read = Collected.from_data(data)
    assert (read.by_name["a"], read.several[0], read.pair) == (Loose(0.5), Loose(0.25), (1, "x"))
    assert (read.colour, read.span, read.at) == (Colour.RED, timedelta(seconds=1.5), time(10, 30))
    with pytest.raises(faust.ValidationError) as caught:
        Collected.from_data({**data, "pair": [1], "state": "lost", "colour": "blue"})
    for text in ("does not have 2 items", "'lost' is not one of 'new', 'paid'", "'blue' is not a valid Colour"):
        assert text in str(caught.value)


@pytest.mark.parametrize("kind", [Order, Coerced, Dated, Owner, Stated])
def test_what_reads_itself_has_no_columns(kind: type) -> None:
    assert schema_of(kind) is None


def test_agents_are_given_what_the_class_reads_and_the_rest_is_dead_letters() -> None:
    app = faust.App("app")
    orders, out = app.topic("orders", value_type=Order), app.topic("out")

    @app.agent(orders)
    async def work(stream: Any) -> None:
        async for order in stream:
            await out.send(value=[order.name, order.kind])

    with InProcess(app) as driver:
        driver.send("orders", {"name": " ann ", "type": "gift"})
        driver.send("orders", {"name": "much too long"})
        driver.run()
        assert [record.value for record in driver.read("out")] == [["ann", "gift"]]
        assert driver.reasons() == [("orders", "decode")]
        assert "is longer than 5" in driver.dead_letters()[0].error
