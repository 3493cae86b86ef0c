"""Rows of any table and answers to queries by delta-rs; no JVM."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.arrow.plain_types import plain_table
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.read.filters import exact_value, filter_sql
from deltaworks.engines.deltars.read.read_support import refuse_misread_rows
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.engines.deltars.write.sql_conditions import named
from deltaworks.errors import ConfigError, EngineError, UnsupportedOperation
from deltaworks.model.selection import Selection
from deltaworks.storage.engine_options import table_options
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_SETTINGS = {"datafusion.execution.parquet.coerce_int96": "us"}
"""Or timestamps of the old form INT96 wrap around outside the years 1677 to 2262."""
_QUERY_ERRORS = ("SQL error", "Schema error", "Error during planning", "Optimizer rule")
_VALUE_ERRORS = ("Divide by zero", "Cast error", "Overflow", "Execution error")
_NO_FIELD = re.compile(r"No field named (.+?)\.(?:\s|$)")
_PREFIX = re.compile(r"^(?:[\w' ]*(?:error|Error|rule)[\w' ]*:\s*|caused by\s*)+")


@dataclass(frozen=True, kw_only=True)
class Readable:
    """A table that delta-rs reads as Spark does."""

    location: str
    table: DeltaTable

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The columns, as Delta describes them."""
        found: list[dict[str, Any]] = json.loads(self.table.schema().to_json())["fields"]
        return found

    def relation(self, name: str) -> str:
        """A subquery for the table under a name, with columns that are compared right."""
        columns = [
            f"{exact_value(named(field['name']), field['type'])} AS {named(field['name'])}"
            for field in self.fields
        ]
        return f"(SELECT {', '.join(columns)} FROM {name})"  # noqa: S608 - quoted names


def readable(location: str, version: int | None = None, stores: Stores = NO_STORES) -> Readable:
    """Open a table; refused where Spark may read other rows."""
    table = DeltaRsEngine(stores, only_sure=True).open(location, version)
    folder = DataFolder(location, storage_options=table_options(stores, location))
    refuse_misread_rows(table, folder)
    return Readable(location=location, table=table)


def scan_rows(location: str, selection: Selection, stores: Stores = NO_STORES) -> pa.Table:
    """The chosen rows of a table; refused where only Spark may choose or read them."""
    found = readable(location, selection.version, stores)
    parts = [f"SELECT {', '.join(named(name) for name in selection.columns) or '*'} FROM t"]  # noqa: S608
    if selection.where:
        condition = filter_sql(selection.where, found.table.schema().to_json())
        if condition is None:
            raise UnsupportedOperation(f'only Spark evaluates the condition "{selection.where}"')
        parts.append(f"WHERE {condition}")
    if selection.limit is not None:
        parts.append(f"LIMIT {selection.limit}")
    return _answer({"t": found}, " ".join(parts))


def query_tables(
    query: str, tables: Mapping[str, Readable], *, limit: int | None = None
) -> pa.Table:
    """What DataFusion answers to a query over tables, which it names as they are named here.

    With a limit the answer is not read to its end, and may be some rows longer.
    """
    with _told(tables):
        return _answer(tables, query, limit)


def _answer(tables: Mapping[str, Readable], query: str, limit: int | None = None) -> pa.Table:
    import pyarrow as pa
    from deltalake import QueryBuilder

    location = ", ".join(found.location for found in tables.values())
    with translated(location):
        builder = QueryBuilder(_SETTINGS)
        for name, found in tables.items():
            builder.register(name, found.table)
        answer = builder.execute(query)
        batches, count = [], 0
        for batch in answer:
            batches.append(pa.record_batch(batch))
            count += batch.num_rows
            if limit is not None and count >= limit:
                break
        return plain_table(pa.Table.from_batches(batches, pa.schema(answer.schema)))


@contextmanager
def _told(tables: Mapping[str, Readable]) -> Iterator[None]:
    """What is wrong with a query is told in our words."""
    try:
        yield
    except EngineError as error:
        said = str(error.__cause__ or "")
        if any(mark in said for mark in (*_QUERY_ERRORS, *_VALUE_ERRORS)):
            raise _query_error(said, tables) from error
        raise


def _query_error(said: str, tables: Mapping[str, Readable]) -> ConfigError:
    if found := _NO_FIELD.search(said):
        name = found[1].replace('"', "")
        last = name.rpartition(".")[2]
        columns = [field["name"] for table in tables.values() for field in table.fields]
        hint = did_you_mean(last, columns)
        if any(column.lower() == last for column in columns if column != last):
            hint = f"{hint} Names with capital letters need double quotes"
        return ConfigError(f'the query names column "{name}", which is not there', hint=hint)
    lines = [_PREFIX.sub("", line).strip() for line in said.splitlines()]
    what = next((line for line in lines if line and "failed" not in line), "see --debug")
    return ConfigError(f"the query cannot be answered: {what.rstrip('.')}")
