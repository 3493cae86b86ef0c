"""A few rows, for messages and for the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.columns import column
from deltaworks.engines.spark.frames.rejects import row_json
from deltaworks.engines.spark.frames.temp_views import aside
from deltaworks.model.commit import Shown
from deltaworks.suggest import INTERNAL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_SAMPLES = 3
_LONGEST_CELL = 120


def sample_rows(frame: DataFrame, *, most: int = MOST_SAMPLES) -> tuple[str, ...]:
    """The first rows of a frame, each as JSON."""
    ours = [name for name in frame.columns if name.startswith(INTERNAL)]
    shown = frame.drop(*[column(frame, name) for name in ours])
    return tuple(str(row[0]) for row in shown.limit(most).select(row_json(shown)).collect())


def first_rows(frame: DataFrame, columns: Sequence[str], *, most: int) -> Shown:
    """The first rows of a frame as text; its row counters do not notice."""
    with aside(frame) as rows:
        cells = [column(rows, name).cast("string") for name in columns]
        found = rows.limit(most).select(*cells).collect()
    return Shown(tuple(columns), tuple(tuple(_cell(value) for value in row) for row in found))


def _cell(value: str | None) -> str:
    if value is None:
        return "NULL"
    line = value.replace("\n", "\\n")
    return line if len(line) <= _LONGEST_CELL else f"{line[: _LONGEST_CELL - 3]}..."
