"""Field descriptors with constraints: the length of a text, the range of a number."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from potok.faust.records.fields import FieldDescriptor, ValidationError


class BooleanField(FieldDescriptor):
    """True or false."""

    def validate(self, value: Any) -> Iterable[ValidationError]:
        if not isinstance(value, bool):
            yield self.validation_error(f"{value!r} is neither true nor false")


class NumberField(FieldDescriptor):
    """A number between `min_value` and `max_value`, both inclusive."""

    def __init__(self, *, max_value: Any = None, min_value: Any = None, **options: Any) -> None:
        super().__init__(max_value=max_value, min_value=min_value, **options)

    def validate(self, value: Any) -> Iterable[ValidationError]:
        low, high = self.options["min_value"], self.options["max_value"]
        if high is not None and value > high:
            yield self.validation_error(f"{value} is more than {high}")
        if low is not None and value < low:
            yield self.validation_error(f"{value} is less than {low}")


class IntegerField(NumberField):
    """A whole number."""

    def prepare_value(self, value: Any, *, coerce: bool | None = None) -> Any:
        return int(value) if coerce else value


class FloatField(NumberField):
    """A number with a fraction."""

    def prepare_value(self, value: Any, *, coerce: bool | None = None) -> Any:
        return float(value) if coerce else value


class DecimalField(NumberField):
    """A decimal of at most `max_digits` digits, `max_decimal_places` of them after the point."""

    def __init__(self, *, max_digits: int | None = None, max_decimal_places: int | None = None, **options: Any) -> None:
        super().__init__(max_digits=max_digits, max_decimal_places=max_decimal_places, **options)

    def prepare_value(self, value: Any, *, coerce: bool | None = None) -> Any:
        return Decimal(str(value)) if coerce and not isinstance(value, Decimal) else value

    def validate(self, value: Any) -> Iterable[ValidationError]:
        yield from super().validate(value)
        _, digits, exponent = Decimal(str(value)).as_tuple()
        if not isinstance(exponent, int):
            yield self.validation_error(f"{value} is not a finite number")
            return
        most, places = self.options["max_digits"], self.options["max_decimal_places"]
        if places is not None and -exponent > places:
            yield self.validation_error(f"{value} has more than {places} decimal places")
        if most is not None and len(digits) > most:
            yield self.validation_error(f"{value} has more than {most} digits")


class _Characters(FieldDescriptor):
    """A field with a length."""

    def __init__(
        self,
        *,
        max_length: int | None = None,
        min_length: int | None = None,
        trim_whitespace: bool = False,
        allow_blank: bool = False,
        **options: Any,
    ) -> None:
        self.trim_whitespace = trim_whitespace
        super().__init__(max_length=max_length, min_length=min_length, allow_blank=allow_blank, **options)

    def prepare_value(self, value: Any, *, coerce: bool | None = None) -> Any:
        return value.strip() if self.trim_whitespace and value is not None else value

    def validate(self, value: Any) -> Iterable[ValidationError]:
        most, least = self.options["max_length"], self.options["min_length"]
        if not value and not self.options["allow_blank"]:
            yield self.validation_error("may not be empty")
        elif least is not None and len(value) < least:
            yield self.validation_error(f"is shorter than {least}")
        if most is not None and len(value) > most:
            yield self.validation_error(f"is longer than {most}")


class StringField(_Characters):
    """A text."""


class BytesField(_Characters):
    """Bytes."""


class DatetimeField(FieldDescriptor):
    """An instant; `date_parser` reads text that is not ISO 8601."""
