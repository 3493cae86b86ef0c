"""CSV files looked at line by line, to say exactly where one is wrong."""

from __future__ import annotations

import bz2
import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from deltaworks.config.files import shown_path
from deltaworks.errors import DeltaworksError, InputError
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.types import StructType

_FIX = "correct it, or set such rows aside with `on_error: quarantine`"
_MOST_LINES = 5_000_000
_OPENERS: dict[str, Callable[..., IO[str]]] = {".gz": gzip.open, ".bz2": bz2.open}
_ONLY_SPARK_READS = (".zst", ".lz4", ".snappy", ".deflate")


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How the files are written."""

    delimiter: str
    quote: str
    encoding: str
    header: bool
    null_value: str

    def lines(self, path: str) -> Iterator[tuple[int, str]]:
        """The lines of a file, numbered; none where only Spark can unpack it."""
        suffix = Path(path).suffix.lower()
        if suffix in _ONLY_SPARK_READS:
            return
        opener = _OPENERS.get(suffix, open)
        with opener(path, "rt", encoding=self.encoding, errors="replace", newline="") as handle:
            for number, line in enumerate(handle, start=1):
                if number > _MOST_LINES:
                    return
                yield number, line.rstrip("\r\n").removeprefix("\ufeff" if number == 1 else "")

    def cells(self, line: str) -> list[str]:
        """One line, cut as Spark cuts it."""
        if len(self.delimiter) != 1:
            return line.split(self.delimiter)
        if not self.quote:
            return next(csv.reader([line], delimiter=self.delimiter, quoting=csv.QUOTE_NONE))
        return next(csv.reader([line], delimiter=self.delimiter, quotechar=self.quote))


def check_headers(bounds: Bounds, dialect: Dialect) -> None:
    """Files of one source have the same columns in the same order, or are refused by name."""
    first: tuple[str, list[str]] | None = None
    for stamp in bounds.files:
        line = next(dialect.lines(stamp.path), None)
        if line is None:
            continue
        names = dialect.cells(line[1])
        if first is None:
            first = (stamp.path, names)
        elif [n.lower() for n in names] != [n.lower() for n in first[1]]:
            raise InputError(
                f"{shown_path(Path(stamp.path))}:1: the header ({', '.join(names)}) is not that "
                f"of {shown_path(Path(first[0]))} ({', '.join(first[1])})",
                hint="read files of different columns as sources of their own",
            )


def local_path(url: str) -> str:
    """The path in a `file:` address."""
    return unquote(urlsplit(url).path) if url.startswith("file:") else url


def bad_row_error(
    parsed: Row, *, file: str, raw: str, schema: StructType, dialect: Dialect
) -> InputError:
    """The error for a row that does not fit its columns: file, line, column and value."""
    path = local_path(file)
    line = next((number for number, text in dialect.lines(path) if text == raw), 0)
    place = f"{shown_path(Path(path))}:{line}" if line else shown_path(Path(path))
    cells, names = dialect.cells(raw), schema.fieldNames()
    if len(cells) != len(names):
        return InputError(
            f"{place}: the row has {len(cells)} cells, the columns are {len(names)}: {raw[:200]}",
            hint=_FIX,
        )
    for cell, field in zip(cells, schema.fields, strict=True):
        if parsed[field.name] is None and cell not in ("", dialect.null_value):
            kind = field.dataType.simpleString()
            message = f'{place}: column "{field.name}": "{cell}" is not {kind}'
            return InputError(message, hint=_FIX)
    return InputError(f"{place}: the row cannot be read: {raw[:200]}", hint=_FIX)


def find_value(
    error: DeltaworksError, bounds: Bounds, dialect: Dialect, *, columns: Sequence[str]
) -> DeltaworksError:
    """The error for a value that a later step could not cast, with its file, line and column."""
    value = str(error.context["value"])
    suspects = {str(name).lower() for name in error.context.get("columns") or ()}  # type: ignore[attr-defined]
    for stamp in bounds.files:
        for number, text in dialect.lines(stamp.path):
            if number == 1 and dialect.header:
                continue
            column = _column_with(value, dialect.cells(text), columns, suspects)
            if column:
                kind = error.context.get("type", "of its type")
                return InputError(
                    f"{shown_path(Path(stamp.path))}:{number}: "
                    f'column "{column}": "{value}" is not {kind}',
                    hint=error.hint,
                )
    return error


def _column_with(value: str, cells: list[str], names: Sequence[str], suspects: set[str]) -> str:
    """The converted column that holds a value in this row; empty when none does."""
    for name, cell in zip(names, cells, strict=False):
        if cell == value and (not suspects or name.lower() in suspects):
            return name
    return ""
