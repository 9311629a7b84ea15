"""`Record` as Faust has it: a class of records that are written as bytes by a codec, and read from them."""

from __future__ import annotations

import dataclasses
from typing import Self, dataclass_transform

from potok.faust.records.codecs import encoder_of, get_codec
from potok.faust.records.model import Model


@dataclass_transform(field_specifiers=(dataclasses.field,))
class Record(Model, namespace=""):
    """A base class for the values of topics and tables. `Order.user_id` is a field; `order.user_id` is its value.

    >>> class Order(Record):
    ...     order_id: str
    ...     amount: float = 0.0
    >>> Order.from_data({"order_id": "o-1", "amount": 12}).amount
    12.0

    Class keywords: `namespace=` names the class in plain data, `coerce=` turns text into numbers and numbers into
    text, `coercions=` are functions that read some types, `date_parser=` one that reads instants. `validation=` checks
    the arguments of `Record(...)` too, and the constraints of fields; `serializer=` is that of topics with this
    value. `include_metadata=True` writes the namespace into each value, `polymorphic_fields=True` lets that of a
    subclass select the class of a value. A class that is `abstract` has no instances. `isodates=` and `decimals=`
    are accepted: dates and decimals are always read.
    """

    def dumps(self, *, serializer: str = "") -> bytes | None:
        """Return the bytes of this record, as in a topic."""
        return encoder_of(serializer or self.__serializer__ or "json", type(self))(self)

    @classmethod
    def loads(cls, data: bytes, *, serializer: str = "", default_serializer: str = "") -> Self:
        """Return a record from such bytes."""
        return cls.from_data(get_codec(serializer or cls.__serializer__ or default_serializer or "json").loads(data))
