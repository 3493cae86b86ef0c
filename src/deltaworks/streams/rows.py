"""Batches made to fit a table, or refused with the fields named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from deltaworks.engines.deltars.schemas import delta_schema
from deltaworks.errors import ConstraintViolated, InputError, SchemaMismatch
from deltaworks.model.schema import ADDED, CAST, MISSING, Schema, SchemaChange, compare, diff_text
from deltaworks.streams.growth import grown, misspelt

if TYPE_CHECKING:
    import pyarrow as pa


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


class Fitting:
    """Brings batches into the shape of a table."""

    def __init__(
        self, schema: pa.Schema, known: Schema, *, label: str, allow_null: bool = False
    ) -> None:
        self.schema = schema
        self._known = known
        self._label = label
        self._allow_null = allow_null
        self._required = [field.name for field in schema if not field.nullable]
        self._checked: pa.Schema | None = None
        self.grow: Callable[[pa.Schema], tuple[pa.Schema, Schema]] | None = None
        """Gives the table more columns and answers what it has then, where that is wanted."""

    def fit(self, rows: pa.Table) -> pa.Table:
        """The rows with the table's columns and types; NULL where a column is missing."""
        if rows.schema is not self._checked and rows.schema != self._checked:
            self._refuse(rows.schema)
            self._checked = rows.schema
        fitted = rows if rows.schema.equals(self.schema) else self._cast(rows)
        for name in () if self._allow_null else self._required:
            if fitted.column(name).null_count:
                raise ConstraintViolated(f'"{name}" of "{self._label}" may not be NULL')
        return fitted

    def _refuse(self, schema: pa.Schema) -> None:
        changes = compare(self._known, delta_schema(schema))
        wrong = tuple(change for change in changes if not self._may(change))
        self._refuse_misspelt(schema)
        if self.grow is not None and wrong and {change.kind for change in wrong} == {ADDED}:
            self.schema, self._known = self.grow(grown(self.schema, schema))
        elif wrong:
            raise SchemaMismatch(
                f'the rows do not fit "{self._label}":\n{diff_text(wrong)}',
                hint="give the rows the table's columns and types",
                context={"fields": [change.column for change in wrong]},
            )

    def _refuse_misspelt(self, schema: pa.Schema) -> None:
        own = {field.name.lower(): field for field in self.schema}
        for field in schema:
            mine = own.get(field.name.lower(), field)
            for path in misspelt(mine.type, field.type, field.name):
                raise SchemaMismatch(
                    f'"{path}" is spelt otherwise in "{self._label}": {mine.type}',
                    hint="within a column, names must be spelt as in the table",
                    context={"fields": [path]},
                )

    def _may(self, change: SchemaChange) -> bool:
        if change.kind == MISSING:
            return change.column not in self._required
        return change.kind == CAST

    def _cast(self, rows: pa.Table) -> pa.Table:
        import pyarrow as pa

        places = {name.lower(): place for place, name in enumerate(rows.column_names)}
        columns = []
        for field in self.schema:
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
        return pa.Table.from_arrays(columns, schema=_nullable(self.schema))


def _nullable(schema: pa.Schema) -> pa.Schema:
    """The schema without its promises about NULL, which are looked at afterwards."""
    import pyarrow as pa

    return pa.schema([field.with_nullable(True) for field in schema])  # noqa: FBT003
