"""Modules under their Faust names: `from potok.faust.streams import current_event`.

They have no files: each is a row of a table, and its names are looked up where they are defined.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from potok.faust.unsupported import REFUSED, CannotImport

_APP, _TYPES, _WEB, _ERRORS = "potok.faust", "potok.faust.types", "potok.faust.web", "potok.errors"

PATHS: dict[str, dict[str, str]] = {
    "agents": {_APP: "Agent", _TYPES: "AgentT"},
    "app.base": {_APP: "App"},
    "auth": {
        _APP: "GSSAPICredentials SASLCredentials SSLCredentials",
        "potok.faust.settings.credentials": "Credentials",
    },
    "channels": {_APP: "Channel ChannelT"},
    "cli.base": {"potok.faust.cli": "AppCommand Command argument option"},
    "events": {_APP: "Event EventT"},
    "exceptions": {
        "potok.faust.records.fields": "ValidationError",
        _ERRORS: "FaustError=PotokError ImproperlyConfigured=TopologyError ProducerSendError=LogError "
        "DecodeError=SchemaError KeyDecodeError=SchemaError ValueDecodeError=SchemaError SchemaError=SchemaError",
    },
    "models.base": {_APP: "FieldDescriptor Model=Record"},
    "models.fields": {
        "potok.faust.records.field_kinds": "BooleanField BytesField DatetimeField DecimalField FloatField IntegerField "
        "NumberField StringField",
        _APP: "FieldDescriptor",
    },
    "models.record": {_APP: "Record"},
    "sensors": {},
    "sensors.monitor": {},
    "serializers.codecs": {"potok.faust.records.codecs": "Codec dumps get_codec loads register"},
    "serializers.schemas": {_APP: "Schema"},
    "streams": {_APP: "Stream StreamT current_event"},
    "tables.globaltable": {_APP: "GlobalTable"},
    "tables.sets": {_APP: "SetGlobalTable SetTable"},
    "tables.table": {_APP: "Table"},
    "tables.wrappers": {
        "potok.faust.tables.window_set": "WindowSet",
        "potok.faust.tables.windowed": "WindowWrapper=WindowedTable",
    },
    "topics": {_APP: "Topic TopicT"},
    "types.agents": {_TYPES: "AgentT"},
    "types.app": {_TYPES: "AppT"},
    "types.channels": {_TYPES: "ChannelT"},
    "types.codecs": {_TYPES: "CodecT"},
    "types.events": {_TYPES: "EventT"},
    "types.models": {_TYPES: "FieldDescriptorT ModelT"},
    "types.serializers": {_TYPES: "SchemaT"},
    "types.streams": {_TYPES: "StreamT"},
    "types.tables": {_TYPES: "TableT"},
    "types.topics": {_TYPES: "TopicT"},
    "types.tuples": {_TYPES: "Message RecordMetadata TP"},
    "types.web": {_WEB: "Request Response View Web"},
    "utils": {_APP: "uuid"},
    "web.base": {_WEB: "Request Response Web"},
    "web.blueprints": {_WEB: "Blueprint"},
    "web.views": {_WEB: "View gives_model takes_model"},
    "worker": {},
}
"""By the path below `faust`: the module of the names, spelled as they are there, or `Faust's name=name there`.
A path without names is not supported: importing from it raises an error that says what to use instead."""


class FaustPath(ModuleType):
    """A module of Faust's, whose names are resolved on first use."""

    def __init__(self, path: str, names: dict[str, str]) -> None:
        super().__init__(f"{_APP}.{path}", f"`faust.{path}`.")
        exports = [(module, *given.partition("=")[::2]) for module, text in names.items() for given in text.split()]
        self._definitions = {name: (module, other or name) for module, name, other in exports}
        self.__all__ = sorted(self._definitions)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            if name in self._definitions:
                module, there = self._definitions[name]
                return getattr(import_module(module), there)
            if name in REFUSED["faust"]:
                raise CannotImport(name, REFUSED["faust"][name])
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return self.__all__


def _put_on_the_path() -> None:
    """Make all of them importable."""
    for path, names in PATHS.items():
        whole = f"{_APP}.{path}"
        made = sys.modules.setdefault(whole, FaustPath(path, names))
        parent, _, name = whole.rpartition(".")
        # A parent module that is not loaded yet, such as `potok.faust.cli`, stays unloaded: imports find it anyway.
        if names and parent in sys.modules and not hasattr(sys.modules[parent], name):
            setattr(sys.modules[parent], name, made)


_put_on_the_path()
