"""Frames under a name, and looks at them that nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from deltaworks.engines.spark.session.connect import held, sibling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def shared_view(frame: DataFrame) -> Iterator[str]:
    """A name under which every session of this JVM sees the frame, cache included."""
    name = f"deltaworks_{uuid4().hex}"
    frame.createGlobalTempView(name)
    try:
        yield f"global_temp.{name}"
    finally:
        frame.sparkSession.catalog.dropGlobalTempView(name)


@contextmanager
def aside(frame: DataFrame) -> Iterator[DataFrame]:
    """The same rows in another session: a look at a few of them there ends no row count here."""
    with shared_view(frame) as view, held(sibling(frame.sparkSession)) as other:
        yield other.table(view)


def is_empty(frame: DataFrame) -> bool:
    """Whether a frame has no rows; its row counters wait for the pass that writes them."""
    with aside(frame) as rows:
        if not rows.isEmpty():
            return False
    frame.count()  # no other pass will come, so this is the one that is counted
    return True
