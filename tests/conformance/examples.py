"""What plug-ins are tried on: small inputs, and their own examples with one word misspelt.

Every step is applied to the same frame, `id bigint, name string, amount double`. A source's input
is written where its example looks for it, by Spark in the format of the source's own name unless
`WRITERS` knows better. A function that an example names is written as one that gives back what it
gets.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.contracts.plugin import Example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("id", "name", "amount")
SCHEMA = "id bigint, name string, amount double"
Cells = tuple[int | None, str | None, float | None]
SOME: tuple[Cells, ...] = ((1, "ann", 2.5), (2, "bob", 1.0))
NULLS: tuple[Cells, ...] = ((1, None, None), (None, "bob", 1.0))
SLIPS = {"id": "idd", "name": "nmae", "amount": "amuont", "orders": "odrers"}
FUNCTION = re.compile(r"(?P<file>[\w/]+\.py):(?P<name>\w+)")
METADATA_JOBS = 3
"""Spark jobs that reading may start: for a header, a footer or a log, never for rows."""


def misspelt(value: Any) -> Any:
    """Options of which every column, path, table and bound is wrong."""
    if isinstance(value, dict):
        return {misspelt(key): misspelt(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [misspelt(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return value + 99
    if isinstance(value, str):
        return re.sub("|".join(rf"\b{word}\b" for word in SLIPS), lambda hit: SLIPS[hit[0]], value)
    return value


def write_functions(options: Example, root: Path) -> None:
    """Write every function that options name as `file.py:function` into the project."""
    for value in options.values():
        if isinstance(value, str) and (named := FUNCTION.fullmatch(value)):
            path = root / named["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"def {named['name']}(given):\n    return given\n", encoding="utf-8")


def _csv(root: Path, options: Example, rows: Sequence[Cells]) -> None:
    with (root / options["path"]).open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows([COLUMNS, *rows])


def _text(root: Path, options: Example, rows: Sequence[Cells]) -> None:
    (root / options["path"]).write_text("".join(f"{row[1]}\n" for row in rows), encoding="utf-8")


def _delta(root: Path, options: Example, rows: Sequence[Cells]) -> None:
    """A table that keeps its changes; a source that names none reads the table `orders`."""
    import pyarrow as pa
    from deltalake import write_deltalake

    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("amount", pa.float64())])
    table = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema)
    folder = root / "warehouse" / options.get("table", "orders")
    write_deltalake(str(folder), table, configuration={"delta.enableChangeDataFeed": "true"})


WRITERS: dict[str, Callable[[Path, Example, Sequence[Cells]], None]] = {
    "csv": _csv,
    "delta": _delta,
    "delta_changes": _delta,
    "sql": _delta,
    "text": _text,
}
READ_COLUMNS = {
    "text": ("value",),
    "delta_changes": (*COLUMNS, "_change_type", "_commit_version", "_commit_timestamp"),
}
"""What a source gives that knows other columns than the rows written for it."""
WITHOUT_NULL = ("text",)
"""Sources that know no NULL."""
READ_BACK = {"csv": {"header": "true", "inferSchema": "true"}}
"""What Spark must be told to read what a sink has written."""


def write_input(
    spark: SparkSession, name: str, options: Example, root: Path, rows: Sequence[Cells]
) -> None:
    """Put rows where the example of a source looks for them."""
    if name in WRITERS:
        WRITERS[name](root, options, rows)
        return
    frame = spark.createDataFrame(list(rows), SCHEMA)
    frame.coalesce(1).write.format(name).save(str(root / options["path"]))
