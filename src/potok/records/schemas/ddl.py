"""Parse schemas in the syntax of Spark and SQL: `"order_id string not null, tags array<string>"`."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import orjson
import pyarrow as pa

from potok.errors import SchemaError
from potok.records.conversion.convert import Reading
from potok.records.schemas.column_types import DECIMAL, TYPES
from potok.records.schemas.defaults import checked_default
from potok.records.schemas.schema import NO_DEFAULT, Field, Schema

_SYNONYMS = {
    "varchar": "string",
    "char": "string",
    "text": "string",
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
    "real": "float",
    "bool": "boolean",
    "bytes": "binary",
    "timestamp_ltz": "timestamp",
}
_DECIMALS = ("decimal", "dec", "numeric")
_TOKEN = re.compile(
    r"\s*(?:(?P<name>[^\W\d]\w*)|`(?P<quoted>(?:[^`]|``)+)`|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|'(?P<text>(?:[^']|'')*)'|(?P<sign>[<>(),:]))"
)


def parse_ddl(text: str) -> Schema:
    """Return a schema from columns (`"a string, b int"`) or from one type (`"bigint"`, `"array<string>"`)."""
    return _Parser(text).parse()


class _Parser:
    """Reads a list of tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        self._at = 0
        position, end = 0, len(text.rstrip())
        while position < end:
            found = _TOKEN.match(text, position)
            if found is None:
                self._fail(position)
            assert found.lastgroup is not None
            self._tokens.append((found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)))
            position = found.end()

    def parse(self) -> Schema:
        if not self._tokens:
            raise SchemaError("the schema is empty", hint='write columns, for example "order_id string, amount double"')
        # A name followed by another word is a column; a type alone is the type of the whole value.
        second = self._tokens[1] if len(self._tokens) > 1 else ("sign", "(", 0)
        columns = second[0] != "sign" or second[1] == ":"
        schema = Schema.struct(self._fields()) if columns else self._type()
        if self._at < len(self._tokens):
            self._fail(self._tokens[self._at][2])
        return schema

    def _fields(self) -> list[Field]:
        fields = [self._field()]
        while self._take(","):
            fields.append(self._field())
        return fields

    def _field(self) -> Field:
        name = self._name()
        self._take(":")
        schema = self._type()
        nullable, default = True, NO_DEFAULT
        while True:
            if self._word("not"):
                self._expect_word("null")
                nullable = False
            elif self._word("null"):
                nullable = True
            elif self._word("default"):
                default = checked_default(name, schema, self._literal(), Reading.JSON)
            elif self._word("comment"):
                self._literal()
            else:
                return Field(name, schema, nullable, default)

    def _type(self) -> Schema:
        position = self._position()
        word = self._name().lower()
        word = _SYNONYMS.get(word, word)
        if word in _DECIMALS:
            return Schema.scalar(self._decimal())
        if word in TYPES:
            self._numbers()
            return Schema.scalar(TYPES[word])
        if word == "array":
            self._expect("<")
            item, nullable = self._type(), self._item_nullable()
            self._expect(">")
            return Schema.list_of(item, nullable=nullable)
        if word == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            item, nullable = self._type(), self._item_nullable()
            self._expect(">")
            return Schema.map_of(key, item, nullable=nullable)
        if word == "struct":
            self._expect("<")
            fields = [] if self._peek() == ("sign", ">") else self._fields()
            self._expect(">")
            return Schema.struct(fields)
        raise SchemaError(
            f'there is no type "{word}" (at character {position + 1} of "{self._text}")',
            hint=f"use one of {', '.join([*TYPES, 'decimal', 'array<...>', 'map<..., ...>', 'struct<...>'])}",
        )

    def _item_nullable(self) -> bool:
        if not self._word("not"):
            return True
        self._expect_word("null")
        return False

    def _decimal(self) -> pa.DataType:
        numbers = self._numbers()
        if not numbers:
            return DECIMAL
        precision, scale = int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise SchemaError(
                f"decimal({precision},{scale}) cannot be", hint="at most 38 digits, and no more of them after the point"
            )
        return pa.decimal128(precision, scale)

    def _numbers(self) -> list[str]:
        if not self._take("("):
            return []
        numbers = [self._token("number")]
        while self._take(","):
            numbers.append(self._token("number"))
        self._expect(")")
        return numbers

    def _literal(self) -> Any:
        kind, text = self._peek()
        if kind == "name" and text.lower() in ("true", "false", "null"):
            self._at += 1
            return {"true": True, "false": False, "null": None}[text.lower()]
        if self._word("json"):
            return orjson.loads(self._token("text").replace("''", "'"))
        if kind == "number":
            self._at += 1
            return orjson.loads(text)
        return self._token("text").replace("''", "'")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at][:2] if self._at < len(self._tokens) else ("end", "")

    def _position(self) -> int:
        return self._tokens[self._at][2] if self._at < len(self._tokens) else len(self._text)

    def _take(self, sign: str) -> bool:
        found = self._peek() == ("sign", sign)
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            self._fail(self._position(), sign)

    def _word(self, word: str) -> bool:
        kind, text = self._peek()
        found = kind == "name" and text.lower() == word
        self._at += found
        return found

    def _expect_word(self, word: str) -> None:
        if not self._word(word):
            self._fail(self._position(), word)

    def _name(self) -> str:
        kind, text = self._peek()
        if kind not in ("name", "quoted"):
            self._fail(self._position(), "a name")
        self._at += 1
        return text.replace("``", "`") if kind == "quoted" else text

    def _token(self, wanted: str) -> str:
        kind, text = self._peek()
        if kind != wanted:
            self._fail(self._position(), f"a {wanted}")
        self._at += 1
        return text

    def _fail(self, position: int, expected: str = "") -> NoReturn:
        found = self._text[position : position + 12].strip() or "the end"
        wanted = f", expected {expected}" if expected else ""
        raise SchemaError(
            f'cannot read the schema "{self._text}": at character {position + 1} is {found}{wanted}',
            hint='write columns, for example "order_id string not null, amount double, tags array<string>"',
        )
