"""The sources of a SELECT: their columns, and whether the query may read them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from potok.sql.analysis.form import Form
from potok.sql.analysis.scope import PSEUDO, ROWTIME, Field, Rows, RowScope, rows_with, source_fields
from potok.sql.catalog import Catalog, Source
from potok.sql.errors import Refused
from potok.sql.expressions.check import check
from potok.sql.expressions.typed import Typed
from potok.sql.properties import STREAM_PULLS, Properties
from potok.sql.row_patterns.analyse import MatchAnalysis, analyse_match
from potok.sql.syntax import ast
from potok.sql.syntax.walk import names_of
from potok.sql.types import BIGINT, TIMESTAMP, quoted

_KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class RelationAnalysis:
    """A source of a query, and its columns."""

    source: Source
    alias: str
    fields: tuple[Field, ...]
    relation: ast.Relation
    as_of: Typed | None = None
    """The time of the version to read, for a versioned table."""
    match: MatchAnalysis | None = None

    @property
    def rows(self) -> Rows:
        if self.match is not None:
            return rows_with(self.fields, is_table=False)
        return rows_with(self.fields, is_table=self.source.is_table, window=self.source.window)


def relations_of(
    catalog: Catalog, query: ast.Select, form: Form, properties: Properties
) -> tuple[RelationAnalysis, ...]:
    relations = [query.relation, *(clause.relation for clause in query.joins)]
    aliases = [relation.alias or relation.name for relation in relations]
    twice = next((alias for alias in aliases if aliases.count(alias) > 1), None)
    if twice is not None:
        hint = f"give it another name: JOIN {quoted(twice)} AS other"
        raise Refused(f"two sources are called {quoted(twice)}", hint=hint, location=relations[-1].at)
    found = []
    for relation, alias in zip(relations, aliases, strict=True):
        source = catalog.source(relation.name, relation.at)
        if form is Form.PULL:
            _check_pulled(source, relation, alias, query, properties)
        elif relation.as_of is not None:
            hint = "AS OF is for pull queries on tables that keep versions"
            raise Refused("a query that keeps running has no AS OF", hint=hint, location=relation.at)
        as_of = _as_of(relation, source, catalog)
        if relation.match is not None:
            match = analyse_match(catalog, relation, source, form)
            found.append(RelationAnalysis(source, alias, match.fields, relation, as_of, match))
            continue
        fields = source_fields(source, alias, positions=form is not Form.PULL or not source.is_table)
        found.append(RelationAnalysis(source, alias, fields, relation, as_of))
    if form is not Form.PULL:
        _check_formats(query, [relation.source for relation in found])
    return tuple(found)


def _check_formats(query: ast.Select, sources: list[Source]) -> None:
    """Reject sources with the value format KAFKA, as ksqlDB does."""
    bare = [source for source in sources if source.value_format.partition(";")[0] == _KAFKA]
    if bare and (query.joins or query.group_by):
        clause, location = ("JOIN", query.joins[0].at) if query.joins else ("GROUP BY", query.group_by[0].at)
        names = ", ".join(quoted(source.name) for source in bare)
        hint = "declare the value in another format, such as JSON or DELIMITED"
        raise Refused(f"the value format KAFKA of {names} does not support {clause}", hint=hint, location=location)


def _check_pulled(
    source: Source, relation: ast.Relation, alias: str, query: ast.Select, properties: Properties
) -> None:
    name = quoted(source.name)
    if source.is_table and not source.table_of:
        hint = (
            f"its rows are not stored: write CREATE SOURCE TABLE over its topic, "
            f"or CREATE TABLE queryable_{source.name} AS SELECT * FROM {name}"
        )
        raise Refused(f"table {name} cannot be read by a pull query", hint=hint, location=relation.at)
    if not source.is_table and not properties.flag(STREAM_PULLS):
        hint = f"write EMIT CHANGES, or SET '{STREAM_PULLS}' = 'true'"
        message = f"{name} is a stream, and pull queries over streams are disabled"
        raise Refused(message, hint=hint, location=relation.at)
    for used in names_of(query) if source.is_table else ():
        if used.name in PSEUDO and used.name != ROWTIME and used.source == alias:
            hint = "a row of a table is not a single record; ask the stream that the table is made of"
            raise Refused(f"{used.name} is not available for the rows of a table", hint=hint, location=used.at)


def _as_of(relation: ast.Relation, source: Source, catalog: Catalog) -> Typed | None:
    if relation.as_of is None:
        return None
    if not source.is_table:
        hint = "AS OF is for tables that keep versions; filter a stream with WHERE ROWTIME <= ..."
        raise Refused(f"{quoted(source.name)} is a stream", hint=hint, location=relation.at)
    scope = RowScope(rows_with((), is_table=True), catalog.types)
    found = check(relation.as_of, scope)
    if found.type in (TIMESTAMP, BIGINT):
        return found
    to = BIGINT if pa.types.is_integer(found.type) else TIMESTAMP
    return check(relation.as_of, scope, to=to)
