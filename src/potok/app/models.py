"""`faust.models`, for those who name fields by their module: `faust.models.fields.StringField`."""

from potok.app import field_kinds as fields
from potok.app.fields import FieldDescriptor
from potok.app.record import Record

__all__ = ["FieldDescriptor", "Record", "fields"]


def __dir__() -> list[str]:
    return sorted(__all__)
