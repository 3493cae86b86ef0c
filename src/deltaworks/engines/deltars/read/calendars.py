"""Files whose days are counted by the old calendar, which Spark converts and delta-rs does not.

Spark 2, and later releases that were told so, wrote days before 1582-10-15 and some timestamps
before 1900 by the Julian calendar, and noted it in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.schemas import arrow_table
from deltaworks.engines.deltars.write.data_files import DataFolder

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_FIRST_YEAR = 1900
_TIMES = ("date", "timestamp", "timestamp_ntz")
_LEGACY_NOTES = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_VERSION = b"org.apache.spark.version"
_LEGACY_VERSIONS = (b"1.", b"2.", b"3.0")


def has_old_days(table: DeltaTable, folder: DataFolder) -> bool:
    """Whether a file may hold days or timestamps by the old calendar."""
    partitions = table.metadata().partition_columns
    fields = json.loads(table.schema().to_json())["fields"]
    columns = tuple(_times([field for field in fields if field["name"] not in partitions]))
    if not columns:
        return False
    with translated(folder.location):
        adds = arrow_table(table.get_add_actions(flatten=True))
    sure = [all(known) for known in zip(*(_modern(adds, name) for name in columns), strict=True)]
    paths = adds.column("path").to_pylist()
    unsure = [path for path, is_sure in zip(paths, sure, strict=True) if not is_sure]
    return any(_is_legacy(folder, unquote(path)) for path in unsure)


def _is_legacy(folder: DataFolder, path: str) -> bool:
    notes = folder.notes(path)
    if notes is None or any(note in notes for note in _LEGACY_NOTES):
        return True
    return notes.get(_VERSION, b"").startswith(_LEGACY_VERSIONS)


def _times(fields: Sequence[dict[str, Any]], prefix: str = "") -> Iterator[str]:
    """The columns with days or timestamps; of those within lists and maps no statistics tell."""
    for field in fields:
        name, kind = f"{prefix}{field['name']}", field["type"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _times(kind["fields"], f"{name}.")
        elif kind in _TIMES or any(f'"{time}"' in json.dumps(kind) for time in _TIMES):
            yield name


def _modern(adds: pa.Table, name: str) -> list[bool]:
    """Of each file, whether statistics show that a column has no early value."""
    import pyarrow.compute as pc

    known = {f"min.{name}", f"null_count.{name}", "num_records"}
    if not known <= set(adds.column_names) or adds.column_names.count(f"min.{name}") > 1:
        return [False] * adds.num_rows
    empty = pc.equal(adds.column(f"null_count.{name}"), adds.column("num_records"))
    modern = pc.greater_equal(pc.year(adds.column(f"min.{name}")), _FIRST_YEAR)
    found: list[bool] = pc.or_kleene(modern, empty).to_pylist()
    return [value is True for value in found]
