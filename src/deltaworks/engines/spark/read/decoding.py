"""Bytes as text: those that are not text of an encoding stop the run, and are never replaced."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deltaworks.config.documents import shown_path
from deltaworks.engines.spark.read.files import FileRows, as_path
from deltaworks.engines.spark.read.text import not_text, only_spark_reads

if TYPE_CHECKING:
    from pyspark.sql import Column

_UTF_8 = "utf-8"


def decoded(column: Column, encoding: str) -> Column:
    """What Spark's text reader gives, which is bytes, as text of the encoding."""
    from pyspark.sql import functions as F

    if encoding.lower() == _UTF_8:
        return F.validate_utf8(column)
    return F.decode(column.cast("binary"), encoding)


def refuse_other_bytes(files: FileRows, encoding: str) -> None:
    """The same for files that only Spark can unpack, and whose reader would replace bytes."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    packed = tuple(stamp for stamp in files.bounds.files if only_spark_reads(stamp.path))
    if not packed or encoding.lower() != _UTF_8:
        return
    those = replace(files, bounds=replace(files.bounds, files=packed))
    frame, _ = those.texts(StructType([]), "text", "address", whole=False)
    wrong = frame.filter(~F.is_valid_utf8("text")).select(as_path(F.col("address"))).head(1)
    if wrong:
        raise not_text(shown_path(wrong[0][0]), encoding)
