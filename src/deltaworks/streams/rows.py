"""Batches made to fit a table, or refused with the fields named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from deltaworks.engines.deltars.schemas import (
    delta_schema,
    null_within,
    nullable,
    refuse_nameless_types,
)
from deltaworks.errors import ConstraintViolated, InputError, SchemaMismatch
from deltaworks.model.schema import ADDED, CAST, MISSING, Schema, SchemaChange, compare, diff_text
from deltaworks.streams.schema_evolution import grown, misspelt

if TYPE_CHECKING:
    import pyarrow as pa


_MAX_NAME = 255
"""The bytes that the name of a folder may have."""


def arrow_table(batch: Any) -> pa.Table:
    """Rows as an Arrow table, whatever library they come from."""
    import pyarrow as pa

    if isinstance(batch, pa.Table):
        return batch
    if isinstance(batch, pa.RecordBatch):
        return pa.Table.from_batches([batch])
    if hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__"):
        return pa.table(batch)
    raise InputError(
        f"rows must come as an Arrow record batch or table, not as {type(batch).__name__}",
        hint="make one with pyarrow.Table.from_pylist(rows, schema=...)",
    )


@dataclass(frozen=True)
class _Shape:
    """The columns of a table at one time, and the columns of rows that are known to fit them."""

    schema: pa.Schema
    known: Schema
    rows: pa.Schema | None = None

    @cached_property
    def required(self) -> frozenset[str]:
        """The columns that may not be NULL."""
        return frozenset(field.name for field in self.schema if not field.nullable)

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns as rows are kept, without promises about NULL: those are looked at here."""
        return nullable(self.schema)

    def takes(self, rows: pa.Schema) -> bool:
        """Whether rows with these columns were looked at before."""
        return rows is self.rows or rows == self.rows


class Fitting:
    """Brings batches into the shape of a table. Threads may share it."""

    def __init__(
        self,
        schema: pa.Schema,
        known: Schema,
        *,
        label: str,
        allow_null: bool = False,
        folders: Sequence[str] = (),
    ) -> None:
        self._shape = _Shape(schema, known)
        self._label = label
        self._allow_null = allow_null
        self._folders = tuple(folders)
        """Columns whose values make the names of folders."""
        self._growing = threading.Lock()
        self.grow: Callable[[pa.Schema], tuple[pa.Schema, Schema]] | None = None
        """Gives the table more columns and answers what it has then, where that is wanted."""

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self._shape.schema

    def fit(self, rows: pa.Table) -> pa.Table:
        """The rows with the table's columns and types; NULL where a column is missing."""
        shape = self._shape
        if not shape.takes(rows.schema):
            shape = self._looked_at(rows.schema)
        fitted = rows if rows.schema.equals(shape.stored) else self._cast(rows, shape)
        self._refuse_broken(fitted)
        self._refuse_long_names(fitted)
        for field, column in zip(shape.schema, fitted.columns, strict=True):
            if not field.nullable and not self._allow_null and column.null_count:
                raise ConstraintViolated(f'"{field.name}" of "{self._label}" may not be NULL')
            for path in null_within(field.type, column, field.name):
                raise ConstraintViolated(f'"{path}" of "{self._label}" may not be NULL')
        return fitted

    def _refuse_broken(self, rows: pa.Table) -> None:
        """Refuse text that is not UTF-8: other programs hand it over, and delta-rs dies of it."""
        import pyarrow as pa

        for name, column in zip(rows.column_names, rows.columns, strict=True):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as problem:
                raise InputError(
                    f'"{name}" of "{self._label}" holds what its type does not allow, '
                    "such as text that is not UTF-8",
                    hint="decode the text, or give the column the type binary",
                ) from problem

    def _refuse_long_names(self, rows: pa.Table) -> None:
        """Refuse text that no folder can be named after."""
        import pyarrow.types as kinds

        for name in self._folders:
            column = rows.column(name)
            texts = column.unique().to_pylist() if kinds.is_string(column.type) else []
            if any(len(quote(f"{name}={text}", safe="")) > _MAX_NAME for text in texts if text):
                raise InputError(
                    f'partition column "{name}" of "{self._label}" has a text that is too long '
                    "for the name of a folder",
                    hint="partition by another column, or shorten it",
                )

    def _looked_at(self, rows: pa.Schema) -> _Shape:
        """The table's shape once rows with these columns fit it; one thread at a time grows it."""
        with self._growing:
            shape = self._shape
            changes = compare(shape.known, delta_schema(rows))
            wrong = tuple(change for change in changes if not _may(change, shape.required))
            self._refuse_misspelt(rows, shape.schema)
            if self.grow is not None and wrong and {change.kind for change in wrong} == {ADDED}:
                more = grown(shape.schema, rows)
                refuse_nameless_types(more)
                shape = _Shape(*self.grow(more))
            elif wrong:
                raise SchemaMismatch(
                    f'the rows do not fit "{self._label}":\n{diff_text(wrong)}',
                    hint="give the rows the table's columns and types",
                    context={"fields": [change.column for change in wrong]},
                )
            self._shape = replace(shape, rows=rows)
            return self._shape

    def _refuse_misspelt(self, rows: pa.Schema, schema: pa.Schema) -> None:
        own = {field.name.lower(): field for field in schema}
        for field in rows:
            mine = own.get(field.name.lower(), field)
            for path in misspelt(mine.type, field.type, field.name):
                raise SchemaMismatch(
                    f'"{path}" is spelt otherwise in "{self._label}": {mine.type}',
                    hint="within a column, names must be spelt as in the table",
                    context={"fields": [path]},
                )

    def _cast(self, rows: pa.Table, shape: _Shape) -> pa.Table:
        import pyarrow as pa

        places = {name.lower(): place for place, name in enumerate(rows.column_names)}
        columns = []
        for field in shape.stored:
            place = places.get(field.name.lower())
            if place is None:
                columns.append(pa.nulls(rows.num_rows, field.type))
                continue
            try:
                columns.append(rows.column(place).cast(field.type))
            except pa.ArrowException as problem:
                raise SchemaMismatch(
                    f'"{field.name}" does not fit "{self._label}": {problem}',
                    hint="cast the column",
                    context={"fields": [field.name]},
                ) from problem
        return pa.Table.from_arrays(columns, schema=shape.stored)


def _may(change: SchemaChange, required: Collection[str]) -> bool:
    if change.kind == MISSING:
        return change.column not in required
    return change.kind == CAST
