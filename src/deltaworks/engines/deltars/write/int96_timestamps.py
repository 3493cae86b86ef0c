"""Moments that delta-rs would read wrongly, in files that others wrote.

Spark may write moments as INT96. Arrow makes nanoseconds since 1970 of those, which turn over in
1677 and in 2262, so a row that delta-rs rewrites would get another time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.schemas import arrow_table
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.errors import UnsupportedOperation

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_FIRST_YEAR, _LAST_YEAR = 1677, 2262
_TIMES = ("timestamp", "timestamp_ntz")


class Int96Timestamps:
    """Looks at the files of one table, at each of them once."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._fine: frozenset[str] = frozenset()

    def problem(self, table: DeltaTable) -> str:
        """Why rows of this table must not be rewritten by delta-rs; empty when they may be."""
        columns = tuple(_moments(json.loads(table.schema().to_json())["fields"]))
        if not columns:
            return ""
        with translated(self._folder.location):
            adds = arrow_table(table.get_add_actions(flatten=True))
        paths = adds.column("path").to_pylist()
        sure = _near_today(adds, columns)
        for path, is_sure in zip(paths, sure, strict=True):
            if is_sure or path in self._fine:
                continue
            if self._folder.has_int96(unquote(path)):
                return (
                    f'column "{columns[0]}" may contain timestamps that delta-rs cannot represent'
                )
        self._fine = frozenset(paths)
        return ""


def refuse_misread(table: DeltaTable, location: str) -> None:
    """Raise when delta-rs would change rows by writing them anew, whatever it is asked to do."""
    if problem := Int96Timestamps(DataFolder(location)).problem(table):
        raise UnsupportedOperation(
            f'"{location}": {problem}', hint="let Spark make the change instead"
        )


def _moments(fields: Sequence[dict[str, Any]], prefix: str = "") -> Iterator[str]:
    """The columns of timestamps; of those within lists and maps no statistics tell."""
    for field in fields:
        name, kind = f"{prefix}{field['name']}", field["type"]
        if kind in _TIMES:
            yield name
        elif isinstance(kind, dict) and kind["type"] == "struct":
            yield from _moments(kind["fields"], f"{name}.")
        elif isinstance(kind, dict) and any(f'"{time}"' in json.dumps(kind) for time in _TIMES):
            yield name


def _near_today(adds: pa.Table, columns: Sequence[str]) -> list[bool]:
    """Of each file, whether statistics show that its timestamps can be counted in nanoseconds."""
    sure = [True] * adds.num_rows
    for name in columns:
        near = _near(adds, name)
        sure = [a and b for a, b in zip(sure, near, strict=True)]
    return sure


def _near(adds: pa.Table, name: str) -> list[bool]:
    import pyarrow.compute as pc

    known = {f"min.{name}", f"max.{name}", f"null_count.{name}", "num_records"}
    if not known <= set(adds.column_names) or adds.column_names.count(f"min.{name}") > 1:
        return [False] * adds.num_rows
    empty = pc.equal(adds.column(f"null_count.{name}"), adds.column("num_records"))
    low, high = adds.column(f"min.{name}"), adds.column(f"max.{name}")
    near = pc.and_(pc.greater(pc.year(low), _FIRST_YEAR), pc.less(pc.year(high), _LAST_YEAR))
    found: list[bool] = pc.or_(
        pc.fill_null(near, False),  # noqa: FBT003 - Arrow takes it by place
        pc.fill_null(empty, False),  # noqa: FBT003
    ).to_pylist()
    return found
