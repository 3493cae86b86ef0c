"""The lines of text files at which refused records stand, found by their text.

Spark does not number lines. So the files are read once more, without Spark, if they are small and
the records are few.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deltaworks.engines.spark.read.text import TextFiles
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_ROWS = 1000
MAX_BYTES = 64 * 1024**2
_PLACE, _TEXT, _LINES = "__deltaworks_place", "__deltaworks_text", "__deltaworks_lines"


def with_lines(refused: DataFrame, files: TextFiles, bounds: Bounds) -> DataFrame:
    """Refused records whose reason names the line besides the file, where it is known."""
    from pyspark.sql import functions as F

    if sum(stamp.size_bytes for stamp in bounds.files) > MAX_BYTES:
        return refused
    texts = frozenset(row["raw"] for row in refused.select("raw").collect())
    found = list(_places(files, bounds, texts))
    if not found:
        return refused
    shape = f"{_PLACE} string, {_TEXT} string, {_LINES} string"
    known = F.broadcast(refused.sparkSession.createDataFrame(found, shape))
    same = (F.col("raw") == F.col(_TEXT)) & F.col("reason").startswith(F.col(_PLACE))
    rest = F.substr("reason", F.length(_PLACE) + 1)
    told = F.coalesce(F.concat(F.col(_LINES), rest), F.col("reason"))
    joined = refused.join(known, same, "left").withColumn("reason", told)
    return joined.select(*refused.columns)


def _places(
    files: TextFiles, bounds: Bounds, texts: frozenset[str]
) -> Iterator[tuple[str, str, str]]:
    """How a reason begins, the text of the record, and how the reason begins with its line."""
    for stamp in bounds.files:
        lines = defaultdict(list)
        for number, text in files.records(stamp.path):
            if text in texts:
                lines[text].append(number)
        for text, numbers in lines.items():
            more = f" and {len(numbers) - 1:,} more" if len(numbers) > 1 else ""
            place = f"in {stamp.path}"
            yield f"{place}: ", text, f"{place}:{numbers[0]}{more}: "
