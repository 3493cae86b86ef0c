"""Which files of a table rows with certain keys can be in, told from the log alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.model.merge_facts import FileScope, KeyRange

if TYPE_CHECKING:
    import pyarrow as pa

_CUT_OFF = timedelta(milliseconds=1)  # what Spark's statistics may lack at the end of a timestamp


def file_scope(
    location: str, version: int, ranges: Sequence[KeyRange] = (), *, stores: Stores = NO_STORES
) -> FileScope:
    """The files whose statistics do not rule the ranges out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = DeltaRsEngine(stores).open(location, version)
    with translated(location):
        adds = pa.table(table.get_add_actions(flatten=True))
    inside = _all(adds.num_rows)
    for asked in ranges:
        inside = pc.and_(inside, _overlaps(adds, asked))
    sizes = adds.column("size_bytes")
    return FileScope(
        files_total=adds.num_rows,
        bytes_total=pc.sum(sizes).as_py() or 0,
        rows_total=_rows(adds),
        files=pc.sum(inside).as_py() or 0,
        bytes=pc.sum(pc.if_else(inside, sizes, 0)).as_py() or 0,
    )


def _overlaps(adds: pa.Table, asked: KeyRange) -> pa.Array:
    """Per file whether it may hold a value of the range; true where nothing is recorded."""
    import pyarrow.compute as pc

    columns = {name.lower(): name for name in adds.column_names}
    key = asked.column.lower()
    lows = columns.get(f"partition.{key}", columns.get(f"min.{key}"))
    highs = columns.get(f"partition.{key}", columns.get(f"max.{key}"))
    # "a.b" there is also the field b of a column a, so it is not said whose figures these are
    if lows is None or highs is None or "." in key:
        return _all(adds.num_rows)
    kind = adds.schema.field(lows).type
    low, high = _value(asked.low, kind), _value(asked.high, kind)
    if asked.kind.startswith("timestamp"):
        low = _value((datetime.fromisoformat(asked.low) - _CUT_OFF).isoformat(sep=" "), kind)
    fits = pc.and_(
        pc.less_equal(adds.column(lows), high), pc.greater_equal(adds.column(highs), low)
    )
    if asked.values and lows == highs:
        fits = pc.is_in(adds.column(lows), _values(asked.values, kind))
    return pc.fill_null(fits, True)  # noqa: FBT003 - Arrow takes it by place


def _value(text: str, kind: pa.DataType) -> pa.Scalar:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    return pc.cast(pa.scalar(f"{text}Z" if is_zoned else text), kind)


def _values(texts: Sequence[str], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    return pa.array([_value(text, kind).as_py() for text in texts], kind)


def _all(count: int) -> pa.Array:
    import pyarrow as pa

    return pa.array([True] * count, pa.bool_())


def _rows(adds: pa.Table) -> int | None:
    import pyarrow.compute as pc

    if "num_records" not in adds.column_names or adds.column("num_records").null_count:
        return None
    return int(pc.sum(adds.column("num_records")).as_py() or 0)
