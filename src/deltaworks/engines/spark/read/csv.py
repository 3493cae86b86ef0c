"""CSV files as their lines show them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from deltaworks.engines.spark.read.text import TextFiles, only_spark_reads

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.types import StructType


@dataclass(frozen=True, kw_only=True)
class CsvFiles(TextFiles):
    """Lines of cells."""

    delimiter: str
    quote: str
    header: bool
    null_value: str
    escape: str = '"'
    multiline: bool = False

    def cells(self, line: str) -> list[str]:
        """One line, cut as Spark cuts it."""
        return next(self._reader([line]), [""])

    def header_names(self, path: str) -> list[str] | None:
        """The names in a file's header, none for an empty file; None where only Spark can tell."""
        if only_spark_reads(path) or (len(self.delimiter) != 1 and self.quote):
            return None
        lines = (line for _, line in self.lines(path))
        first = next((line for line in lines if line.strip()), "")
        rest = lines if self.multiline else ()
        rows = self._reader(f"{line}\n" for line in chain([first], rest))
        return [self._name(name, i) for i, name in enumerate(next(rows, []))] if first else []

    def _name(self, cell: str, position: int) -> str:
        """A column without a name is called after its position, as Spark calls it."""
        return f"_c{position}" if cell in ("", self.null_value) else cell

    def _reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        if len(self.delimiter) != 1:
            return (line.rstrip("\n").split(self.delimiter) for line in lines)
        if not self.quote:
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE)
        escape = self.escape if self.escape not in ("", self.quote) else None
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, escapechar=escape)

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

    def remedy(self, raw: str) -> str:
        if self.quote and not self.multiline and raw.count(self.quote) % 2:
            return "say `multiline: true` if a quoted cell goes on in the next line, or correct it"
        return super().remedy(raw)
