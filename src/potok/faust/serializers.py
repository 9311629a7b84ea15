"""`faust.serializers`, for programs that name codecs by their module: `faust.serializers.codecs.register`."""

from potok.faust.records import codecs
from potok.faust.records.codecs import Schema

__all__ = ["Schema", "codecs"]


def __dir__() -> list[str]:
    return sorted(__all__)
