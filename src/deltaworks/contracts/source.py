"""Where rows come from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.plugin import Plugin
from deltaworks.errors import DeltaworksError, UnsupportedOperation
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class Source(Plugin):
    """Says what it would read, then reads exactly that."""

    kind: ClassVar[str] = "source"

    @abstractmethod
    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        """What there is to read now, found without an engine; `since` is what was read last."""

    @abstractmethod
    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        """The rows within the bounds, lazily; refused rows are marked, never dropped."""

    def reread(self, ctx: RunContext, kept: DataFrame, columns: StructType) -> DataFrame:
        """Quarantined rows (`raw`, the text; `row`, what was known), read as `read` would.

        `columns` are those they had when they left.
        """
        raise UnsupportedOperation(f"a {self.plugin_type()} source sets no text aside")

    def reads_increments(self) -> bool:
        """Whether each batch reads only what is new since the last one."""
        return False

    def start_at(self, project_ctx: ProjectContext, point: str) -> Bounds | None:
        """What counts as read when a batch is to start at a point; None when nothing does."""
        raise UnsupportedOperation(f"a {self.plugin_type()} source cannot start at a point")

    def still_there(self, project_ctx: ProjectContext, bounds: Bounds) -> str:
        """Why recorded bounds can no longer be read identically; empty when they can."""
        return ""

    def here(self, project_ctx: ProjectContext, bounds: Bounds) -> Bounds:
        """Recorded bounds as they are read here and now, where the project may have moved."""
        return bounds

    def changed_while_read(self, project_ctx: ProjectContext, bounds: Bounds) -> str:
        """Why what was read just now is not what the bounds promise; empty when it is."""
        return self.still_there(project_ctx, bounds)

    def repeats_rows(self) -> bool:
        """Whether a batch may read rows that an earlier one has read, so that none is missed."""
        return False

    def rows(self, project_ctx: ProjectContext, bounds: Bounds) -> int | None:
        """How many rows the bounds hold, where metadata tells without reading them."""
        return None

    def holds_rows(self, project_ctx: ProjectContext, bounds: Bounds) -> bool:
        """Whether the bounds surely hold a row, where that can be told without an engine."""
        return False

    def finds_columns(self) -> bool:
        """Whether its columns are found in what it reads, so that a plan should show them."""
        return False

    def probe(self, project_ctx: ProjectContext) -> str:
        """What is there, found without an engine by the smallest real look; an error when it fails.

        Sources that connect to a server override it, and read one row.
        """
        self.bounds(project_ctx, None)
        return "it can be read"

    def tables_read(self, project_ctx: ProjectContext) -> tuple[str, ...]:
        """Locations of the tables this source reads."""
        return ()

    def files_read(self, project_ctx: ProjectContext) -> tuple[str, ...]:
        """Paths, folders and globs of the files this source reads."""
        return ()

    def located(self, ctx: RunContext, bounds: Bounds, refused: DataFrame) -> DataFrame:
        """The few rows that it refused, with more about their place in `reason` if it is known."""
        return refused

    def explain_failure(
        self, ctx: RunContext, bounds: Bounds, error: DeltaworksError
    ) -> DeltaworksError:
        """The same error, with the file, line and value at fault where they can be found."""
        return error


@runtime_checkable
class CanStream(Protocol):
    """A source that can be read without an engine, a range at a time."""

    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        """What there is to read now; `since` is what was read last."""
        ...

    def why_not_streamed(self) -> str:
        """Which of its options only an engine can do; empty for none."""
        ...

    def arrow_batches(
        self, project_ctx: ProjectContext, bounds: Bounds, columns: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """The rows within the bounds, as rows of these columns."""
        ...
