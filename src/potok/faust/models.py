"""`faust.models`, for programs that name fields by their module: `faust.models.fields.StringField`."""

from potok.faust.records import field_kinds as fields
from potok.faust.records.fields import FieldDescriptor
from potok.faust.records.record import Record

__all__ = ["FieldDescriptor", "Record", "fields"]


def __dir__() -> list[str]:
    return sorted(__all__)
