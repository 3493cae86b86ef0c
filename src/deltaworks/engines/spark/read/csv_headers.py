"""CSV files by their headers, and why one of their rows does not fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from deltaworks.config.documents import shown_path
from deltaworks.engines.spark.frames.columns import quoted, text_columns
from deltaworks.engines.spark.read.csv import CsvFiles
from deltaworks.engines.spark.read.drifting_files import Part, with_files
from deltaworks.engines.spark.read.files import FileRows
from deltaworks.model.batch import FileStamp
from deltaworks.storage.drift import refuse_twins

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

_TWINS = (
    "give each column a name of its own, or name all of them in order with `schema` and "
    "`columns_by: position`"
)
_TEXT = "__deltaworks_cells"
_OTHER_COUNT = "__deltaworks_other_count"


def by_header(files: FileRows, texts: CsvFiles, *, asks_spark: bool) -> list[Part]:
    """The files in parts of the same header; its columns are text. Empty files join the first.

    There is no part when all files are empty.
    """
    groups: dict[tuple[str, ...], tuple[list[str], list[FileStamp]]] = {}
    empty = []
    for stamp in files.bounds.files:
        names = None if asks_spark else texts.header_names(stamp.path)
        if names is None:
            names = with_files(files, [stamp]).own_columns().fieldNames()
        if not names:
            empty.append(stamp)
            continue
        refuse_twins([name.strip() for name in names], f"{shown_path(stamp.path)}:1", hint=_TWINS)
        key = tuple(name.strip().lower() for name in names)
        groups.setdefault(key, (names, []))[1].append(stamp)
    for _, stamps in list(groups.values())[:1]:
        stamps.extend(empty)
    return [
        Part(files=with_files(files, stamps), columns=text_columns(names), line=1)
        for names, stamps in groups.values()
    ]


def typed(part: Part, declared: StructType | None, *, infer: bool) -> Part:
    """The part with the types that are declared or found; a declared column by its own name."""
    from pyspark.sql.types import StructField, StructType

    fields = part.columns.fields
    if infer:
        found = part.files.own_columns(inferSchema="true").fields
        pairs = zip(fields, found, strict=True)
        fields = [StructField(field.name, other.dataType) for field, other in pairs]
    known = {field.name.lower(): field for field in declared.fields} if declared else {}
    matched = [known.get(field.name.strip().lower(), field) for field in fields]
    return replace(part, columns=StructType(matched))


def misfit(corrupt: str, columns: StructType, options: Mapping[str, str], *, quote: str) -> Column:
    """Why a row does not fit the columns; the frame has what Spark could read of it."""
    from pyspark.sql import functions as F

    raw, count = F.col(corrupt), len(columns.fields)
    shape = text_columns([*(f"c{i}" for i in range(count)), _OTHER_COUNT])
    told = {**options, "columnNameOfCorruptRecord": _OTHER_COUNT}
    cells = F.from_csv(raw, shape.json(), told)
    wrong = []
    for i, field in enumerate(columns.fields):
        text, kind = cells.getField(f"c{i}"), field.dataType.simpleString()
        told_ = F.concat(F.lit(f'column "{field.name}": "'), text, F.lit(f'" is not {kind}'))
        wrong.append(F.when(F.col(quoted(field.name)).isNull() & text.isNotNull(), told_))
    by_count = F.concat(F.lit("the row has "), _cells(raw, options, quote), F.lit(f"{count}"))
    reason = F.when(cells.getField(_OTHER_COUNT).isNotNull(), by_count)
    reason = reason.otherwise(F.concat_ws("; ", *wrong))
    goes_on = "; say `multiline: true` if a quoted cell goes on in the next line"
    return F.concat(reason, F.when(_is_open(raw, quote), F.lit(goes_on)).otherwise(F.lit("")))


def _is_open(raw: Column, quote: str) -> Column:
    """Whether a quote of a row is not closed; never where quotes mean nothing."""
    from pyspark.sql import functions as F

    quotes = F.length(raw) - F.length(F.replace(raw, F.lit(quote), F.lit("")))
    return (F.lit(quote) != "") & (quotes % 2 == 1)


def _cells(raw: Column, options: Mapping[str, str], quote: str) -> Column:
    """How many cells a row has, where no quote makes that doubtful."""
    from pyspark.sql import functions as F

    count = F.size(F.split(raw, re.escape(options["sep"]))).cast("string")
    exact = F.concat(count, F.lit(" cells, the columns are "))
    other = F.lit("more or fewer cells than the columns, which are ")
    return F.when(raw.contains(quote), other).otherwise(exact) if quote else exact
