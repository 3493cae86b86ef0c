"""CSV files, JSON records and lines of text: their types come from a schema, or from the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from typing import TYPE_CHECKING, Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.arrow.readers import is_empty, reading, source
from deltaworks.errors import InputError
from deltaworks.storage.drift import Drift, FileDrift, refuse_twins
from deltaworks.storage.paths import open_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_LINES = 50_000


@dataclass(frozen=True, kw_only=True)
class CsvFiles:
    """Delimited text; a column that no schema and no table knows is text."""

    schema: pa.Schema | None = None
    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    null_value: str = ""
    encoding: str = "UTF-8"
    multiline: bool = False
    stores: Stores = NO_STORES

    def columns(self, path: str) -> pa.Schema | None:
        import pyarrow as pa

        if self.schema is not None:
            return self.schema
        names = self._names(path)
        return pa.schema([(name, pa.string()) for name in names]) if names else None

    def batches(self, path: str, *, into: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        names = self._names(path)
        if not names:
            return
        known = self.schema if self.schema is not None else into
        kinds = {field.name.lower(): field.type for field in known}
        types = {name: kinds.get(name.lower(), pa.string()) for name in names}
        with reading(path, "a CSV"):
            yield from self._open(path, types)

    def _names(self, path: str) -> list[str]:
        """The names of a file's columns; none when it is empty."""
        with reading(path, "a CSV"):
            if is_empty(path, self.stores):
                return []
            found: list[str] = self._open(path, {}).schema.names
        if self.schema is None:
            return found
        if not self.header:
            return self._by_position(path, found)
        refuse_twins(found, f'file "{path}"', hint="give each column a name of its own")
        wanted = {name.lower() for name in self.schema.names}
        there = {name.lower() for name in found}
        drift = FileDrift(
            path=path,
            unknown=tuple(name for name in found if name.lower() not in wanted),
            missing=tuple(name for name in self.schema.names if name.lower() not in there),
            line=1,
        )
        Drift().judge([drift], lambda _: None)
        return found

    def _by_position(self, path: str, found: list[str]) -> list[str]:
        assert self.schema is not None
        if len(found) == len(self.schema):
            return list(self.schema.names)
        raise InputError(
            f'file "{path}" has {len(found)} columns',
            hint=f"the schema says {', '.join(self.schema.names)}",
            context={"path": path},
        )

    def _open(self, path: str, types: dict[str, Any]) -> Any:
        from pyarrow import csv

        own = list(types) if types and not self.header else None
        doubled = self.escape == self.quote
        return csv.open_csv(
            source(path, self.stores),
            read_options=csv.ReadOptions(
                encoding=self.encoding,
                column_names=own,
                autogenerate_column_names=not self.header and own is None,
            ),
            parse_options=csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char=self.quote or False,
                double_quote=doubled,
                escape_char=False if doubled else self.escape or False,
                newlines_in_values=self.multiline,
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                null_values=[self.null_value],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class JsonFiles:
    """A JSON record on each line; a field that neither schema nor table knows is refused."""

    schema: pa.Schema | None = None
    stores: Stores = NO_STORES

    def columns(self, path: str) -> pa.Schema | None:
        return self.schema

    def batches(self, path: str, *, into: pa.Schema) -> Iterator[pa.RecordBatch]:
        from pyarrow import json

        known = self.schema if self.schema is not None else into
        parse = json.ParseOptions(explicit_schema=known, unexpected_field_behavior="error")
        with reading(path, "a JSON"):
            if not is_empty(path, self.stores):
                yield from json.open_json(source(path, self.stores), parse_options=parse)


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """Lines, as column `value`."""

    encoding: str = "UTF-8"
    stores: Stores = NO_STORES

    def columns(self, path: str) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([("value", pa.string())])

    def batches(self, path: str, *, into: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with reading(path, "a text"), open_bytes(path, self.stores) as raw:
            handle = TextIOWrapper(raw, encoding=self.encoding)
            while lines := [line.removesuffix("\n") for line in islice(handle, _LINES)]:
                yield pa.record_batch({"value": lines}, schema=self.columns(path))
