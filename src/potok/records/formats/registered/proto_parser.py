"""Parse Protobuf's schema language to a descriptor: what is needed to read messages, without custom options.

Of the options of a field, only `packed` and Confluent's `field_meta` matter: precision and scale of a decimal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf import descriptor_pb2

from potok.records.formats.registered.proto_tokens import ProtoSyntaxError, Tokens

_Field: Final = descriptor_pb2.FieldDescriptorProto
_DEEPEST = 50
_LABELS = {"optional": _Field.LABEL_OPTIONAL, "required": _Field.LABEL_REQUIRED, "repeated": _Field.LABEL_REPEATED}
SCALARS = {
    "double": _Field.TYPE_DOUBLE,
    "float": _Field.TYPE_FLOAT,
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "int32": _Field.TYPE_INT32,
    "fixed64": _Field.TYPE_FIXED64,
    "fixed32": _Field.TYPE_FIXED32,
    "bool": _Field.TYPE_BOOL,
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "uint32": _Field.TYPE_UINT32,
    "sfixed32": _Field.TYPE_SFIXED32,
    "sfixed64": _Field.TYPE_SFIXED64,
    "sint32": _Field.TYPE_SINT32,
    "sint64": _Field.TYPE_SINT64,
}
_MOST_FIELD_NUMBER = (1 << 29) - 1


@dataclass(slots=True)
class ParsedFile:
    """A descriptor, and the parameters of its fields by the message and the name of the field."""

    file: Any
    parameters: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)


def parse_proto(text: str, name: str) -> ParsedFile:
    """Parse a schema as a file of this name. Raises `ProtoSyntaxError`."""
    return _Parser(text, name).parse()


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._tokens = Tokens.of(text)
        self._file: Any = descriptor_pb2.FileDescriptorProto(name=name)
        self._found = ParsedFile(self._file)
        self._proto3 = False

    def parse(self) -> ParsedFile:
        tokens = self._tokens
        while tokens.kind != "end":
            if tokens.skips(";"):
                continue
            word = tokens.text
            if word == "syntax":
                self._syntax()
            elif word == "package":
                tokens.take()
                self._file.package = tokens.type_name()
                tokens.expect(";")
            elif word == "import":
                self._import()
            elif word == "message":
                self._message(self._file.message_type.add(), self._file.package, 0)
            elif word == "enum":
                self._enum(self._file.enum_type.add())
            elif word in ("service", "extend"):
                tokens.take()
                tokens.type_name()
                tokens.skip_braces()
            elif word == "option":
                tokens.skip_statement()
            else:
                raise ProtoSyntaxError(f"unexpected {word!r}")
        return self._found

    def _syntax(self) -> None:
        tokens = self._tokens
        tokens.take()
        tokens.expect("=")
        syntax = tokens.string()
        if syntax not in ("proto2", "proto3"):
            raise ProtoSyntaxError(f"there is no syntax {syntax!r}")
        self._proto3 = syntax == "proto3"
        self._file.syntax = syntax
        tokens.expect(";")

    def _import(self) -> None:
        tokens = self._tokens
        tokens.take()
        public = tokens.text == "public" and bool(tokens.take())
        if tokens.text == "weak":
            tokens.take()
        if public:
            self._file.public_dependency.append(len(self._file.dependency))
        self._file.dependency.append(tokens.string())
        tokens.expect(";")

    def _message(self, message: Any, scope: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise ProtoSyntaxError(f"messages are nested more than {_DEEPEST} deep")
        tokens = self._tokens
        tokens.take()
        message.name = tokens.name()
        path = f"{scope}.{message.name}" if scope else message.name
        tokens.expect("{")
        while not tokens.skips("}"):
            if tokens.skips(";"):
                continue
            word, following = tokens.text, tokens.following()
            named = following not in ("=", ".")
            if word == "message" and named:
                self._message(message.nested_type.add(), path, depth + 1)
            elif word == "enum" and named:
                self._enum(message.enum_type.add())
            elif word == "oneof" and named:
                self._oneof(message, path)
            elif word in ("reserved", "extensions", "option") and named:
                tokens.skip_statement()
            elif word == "extend" and named:
                tokens.take()
                tokens.type_name()
                tokens.skip_braces()
            elif word == "map" and following == "<":
                self._map(message, path)
            else:
                self._field(message, path, depth)
        _hide_oneofs(message)

    def _field(self, message: Any, path: str, depth: int, oneof: int | None = None) -> None:
        tokens = self._tokens
        made = message.field.add(label=_Field.LABEL_OPTIONAL)
        if tokens.text in _LABELS and tokens.following() not in ("=", "."):
            label = tokens.take()
            made.label = _LABELS[label]
            made.proto3_optional = self._proto3 and label == "optional"
        if tokens.text == "group" and tokens.following() != "=":
            raise ProtoSyntaxError("groups are not supported")
        self._type(made)
        self._named(made, path)
        if oneof is not None:
            made.oneof_index = oneof

    def _type(self, made: Any) -> None:
        name = self._tokens.type_name()
        if name in SCALARS:
            made.type = SCALARS[name]
        else:
            made.type_name = name

    def _named(self, made: Any, path: str) -> None:
        """Read name, number and options of a field."""
        tokens = self._tokens
        made.name = tokens.name()
        tokens.expect("=")
        made.number = tokens.number()
        if not 0 < made.number <= _MOST_FIELD_NUMBER:
            raise ProtoSyntaxError(f"field {made.name!r} cannot have the number {made.number}")
        if tokens.skips("["):
            self._options(made, path)
        tokens.expect(";")

    def _options(self, made: Any, path: str) -> None:
        tokens = self._tokens
        while not tokens.skips("]"):
            if tokens.skips(","):
                continue
            name = ""
            while tokens.text not in ("=", "]", ""):
                name += tokens.take()
            tokens.expect("=")
            if name.startswith("(confluent.field_meta)") and tokens.text == "{":
                self._found.parameters[path, made.name] = self._parameters()
            elif tokens.text == "{":
                tokens.skip_braces()
            elif name == "packed":
                made.options.packed = tokens.take() == "true"
            else:
                tokens.take()

    def _parameters(self) -> dict[str, str]:
        """Read the pairs of key and value in a block, wherever they are nested."""
        tokens, begin = self._tokens, self._tokens.at
        tokens.skip_braces()
        inside = Tokens([*tokens.kinds[begin : tokens.at], "end"], [*tokens.texts[begin : tokens.at], ""])
        pairs: list[dict[str, str]] = [{}]
        while inside.kind != "end":
            word = inside.take()
            if word in ("key", "value") and inside.text == ":":
                inside.take()
                pairs[-1][word] = inside.string()
                if len(pairs[-1]) == 2:
                    pairs.append({})
        return {pair["key"]: pair["value"] for pair in pairs if len(pair) == 2}

    def _map(self, message: Any, path: str) -> None:
        tokens = self._tokens
        tokens.take()
        tokens.expect("<")
        entry = message.nested_type.add()
        entry.options.map_entry = True
        key = entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL)
        self._type(key)
        tokens.expect(",")
        value = entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL)
        self._type(value)
        tokens.expect(">")
        made = message.field.add(label=_Field.LABEL_REPEATED, type=_Field.TYPE_MESSAGE)
        self._named(made, path)
        entry.name = f"{''.join(part[:1].upper() + part[1:] for part in made.name.split('_'))}Entry"
        made.type_name = f".{path}.{entry.name}"

    def _oneof(self, message: Any, path: str) -> None:
        tokens = self._tokens
        tokens.take()
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=tokens.name())
        tokens.expect("{")
        while not tokens.skips("}"):
            if tokens.text == "option" and tokens.following() not in ("=", "."):
                tokens.skip_statement()
            elif not tokens.skips(";"):
                self._field(message, path, 0, index)

    def _enum(self, enum: Any) -> None:
        tokens = self._tokens
        tokens.take()
        enum.name = tokens.name()
        tokens.expect("{")
        while not tokens.skips("}"):
            if tokens.skips(";"):
                continue
            if tokens.text in ("option", "reserved") and tokens.following() != "=":
                if tokens.text == "option":
                    self._enum_option(enum)
                else:
                    tokens.skip_statement()
                continue
            value = enum.value.add(name=tokens.name())
            tokens.expect("=")
            value.number = tokens.number()
            if not tokens.skips(";"):
                tokens.skip_statement()

    def _enum_option(self, enum: Any) -> None:
        tokens, begin = self._tokens, self._tokens.at
        tokens.skip_statement()
        if tokens.texts[begin + 1 : begin + 4] == ["allow_alias", "=", "true"]:
            enum.options.allow_alias = True


def _hide_oneofs(message: Any) -> None:
    """Give each field that is `optional` in proto3 the oneof of its own that a descriptor needs."""
    for made in message.field:
        if made.proto3_optional and not made.HasField("oneof_index"):
            made.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{made.name}")
