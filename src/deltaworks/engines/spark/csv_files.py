"""CSV files as their lines show them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.config.files import shown_path
from deltaworks.engines.spark.text_files import TextFiles
from deltaworks.errors import InputError
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.types import StructType


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class CsvFiles(TextFiles):
    """Lines of cells."""

    delimiter: str
    quote: str
    header: bool
    null_value: str

    def cells(self, line: str) -> list[str]:
        """One line, cut as Spark cuts it."""
        if len(self.delimiter) != 1:
            return line.split(self.delimiter)
        if not self.quote:
            return next(csv.reader([line], delimiter=self.delimiter, quoting=csv.QUOTE_NONE))
        return next(csv.reader([line], delimiter=self.delimiter, quotechar=self.quote))

    def plain_header(self, path: str) -> list[str] | None:
        """The names in a file's first line, where Spark surely makes the same of them."""
        _, line = next(self.lines(path), (0, ""))
        names = line.split(self.delimiter)
        are_plain = all(_PLAIN_NAME.fullmatch(name) and name != self.null_value for name in names)
        differ = len({name.lower() for name in names}) == len(names)
        return names if are_plain and differ else None

    def records(self, path: str) -> Iterator[tuple[int, str]]:
        first = 2 if self.header else 1
        return ((number, line) for number, line in self.lines(path) if number >= first)

    def values(self, line: str, columns: Sequence[str]) -> Mapping[str, str]:
        return dict(zip(columns, self.cells(line), strict=False))

    def fault(self, raw: str, parsed: Sequence[Row], columns: StructType) -> str:
        cells, names = self.cells(raw), columns.fieldNames()
        if len(cells) != len(names):
            return f"the row has {len(cells)} cells, the columns are {len(names)}: {raw[:200]}"
        for cell, field in zip(cells, columns.fields, strict=True):
            if parsed[0][field.name] is None and cell not in ("", self.null_value):
                return f'column "{field.name}": "{cell}" is not {field.dataType.simpleString()}'
        return f"the row cannot be read: {raw[:200]}"


def check_headers(bounds: Bounds, files: CsvFiles) -> None:
    """Files of one source have the same columns in the same order, or are refused by name."""
    first: tuple[str, list[str]] | None = None
    for stamp in bounds.files:
        line = next(files.lines(stamp.path), None)
        if line is None:
            continue
        names = files.cells(line[1])
        if first is None:
            first = (stamp.path, names)
        elif [n.lower() for n in names] != [n.lower() for n in first[1]]:
            raise InputError(
                f"{shown_path(stamp.path)}:1: the header ({', '.join(names)}) is not that "
                f"of {shown_path(first[0])} ({', '.join(first[1])})",
                hint="read files of different columns as sources of their own",
            )
