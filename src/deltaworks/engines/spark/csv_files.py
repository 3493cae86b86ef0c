"""CSV files looked at line by line, to say exactly where one is wrong."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from deltaworks.errors import DeltaworksError, InputError
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_FIX = "correct it, or set such rows aside with `on_error: quarantine`"
_MOST_LINES = 5_000_000


def _lines(path: str, encoding: str) -> Iterator[tuple[int, str]]:
    with Path(path).open(encoding=encoding, errors="replace", newline="") as handle:
        for number, line in enumerate(handle, start=1):
            if number > _MOST_LINES:
                return
            yield number, line.rstrip("\r\n")


def _cells(line: str, delimiter: str, quote: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter, quotechar=quote), [])


def check_headers(bounds: Bounds, *, delimiter: str, quote: str, encoding: str) -> None:
    """Files of one source have the same columns in the same order, or are refused by name."""
    first: tuple[str, list[str]] | None = None
    for stamp in bounds.files:
        if stamp.path.endswith((".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")):
            continue
        line = next(_lines(stamp.path, encoding), None)
        if line is None:
            continue
        names = _cells(line[1], delimiter, quote)
        if first is None:
            first = (stamp.path, names)
        elif [n.lower() for n in names] != [n.lower() for n in first[1]]:
            raise InputError(
                f"{stamp.path}:1: the header ({', '.join(names)}) is not that of "
                f"{first[0]} ({', '.join(first[1])})",
                hint="read files of different columns as sources of their own",
            )


def local_path(url: str) -> str:
    """The path in a `file:` address."""
    return unquote(urlsplit(url).path) if url.startswith("file:") else url


def bad_row_error(
    spark: SparkSession, *, file: str, raw: str, schema: StructType, delimiter: str, quote: str
) -> InputError:
    """The error for a row that does not fit its columns: file, line, column and value."""
    path = local_path(file)
    line = next((number for number, text in _lines(path, "utf-8") if text == raw), 0)
    place = f"{path}:{line}" if line else path
    cells = _cells(raw, delimiter, quote)
    names = schema.fieldNames()
    if len(cells) != len(names):
        return InputError(
            f"{place}: the row has {len(cells)} cells, the columns are {len(names)}: {raw[:200]}",
            hint=_FIX,
        )
    column, value, kind = _wrong_cell(spark, cells, schema)
    return InputError(f'{place}: column "{column}": "{value}" is not {kind}', hint=_FIX)


def _wrong_cell(spark: SparkSession, cells: list[str], schema: StructType) -> tuple[str, str, str]:
    """The first cell that is not of its column's type."""
    from pyspark.sql import functions as F

    tried = [
        F.lit(cell).try_cast(field.dataType).isNull() & F.lit(cell != "")
        for cell, field in zip(cells, schema.fields, strict=True)
    ]
    wrong = spark.range(1).select(*tried).collect()[0]
    position = next((i for i, bad in enumerate(wrong) if bad), 0)
    field = schema.fields[position]
    return field.name, cells[position], field.dataType.simpleString()


def find_value(
    error: DeltaworksError, bounds: Bounds, *, delimiter: str, encoding: str
) -> DeltaworksError:
    """The error for a value that a later step could not cast, with its file, line and column."""
    value = str(error.context["value"])
    suspects = {str(name).lower() for name in error.context.get("columns") or ()}  # type: ignore[attr-defined]
    for stamp in bounds.files:
        names: list[str] = []
        for number, text in _lines(stamp.path, encoding):
            cells = _cells(text, delimiter, '"')
            names = names or cells
            column = _column_with(value, cells, names, suspects) if number > 1 else ""
            if column:
                kind = error.context.get("type", "of its type")
                return InputError(
                    f'{stamp.path}:{number}: column "{column}": "{value}" is not {kind}',
                    hint=error.hint,
                )
    return error


def _column_with(value: str, cells: list[str], names: list[str], suspects: set[str]) -> str:
    """The converted column that holds a value in this row; empty when none does."""
    for name, cell in zip(names, cells, strict=False):
        if cell == value and (not suspects or name.lower() in suspects):
            return name
    return ""
