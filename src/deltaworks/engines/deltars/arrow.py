"""What delta-rs answers, as PyArrow has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_table(answer: Any) -> pa.Table:
    """All rows of an answer; `pa.table` would do as well, and load pandas to look for frames."""
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(answer).read_all()
