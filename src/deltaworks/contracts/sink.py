"""Where rows go."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.contracts.context import BatchWrite, ProjectContext, RunContext
from deltaworks.contracts.plugin import Plugin
from deltaworks.errors import UnsupportedOperation
from deltaworks.model.commit import CommitInfo, SinkState, UndoInfo
from deltaworks.model.results import CheckResult, MaintenanceResult, OutputPlan
from deltaworks.model.table_ref import TableRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A batch and a target once the one is in the other."""

    lands: DataFrame | None = None
    """The rows that the target takes; None when it takes all of the batch as they are."""
    stays: DataFrame | None = None
    """The rows of the target that the batch leaves as they are; None when there are none."""


class Sink(Plugin):
    """Lands a batch in one atomic step, with the batch's number in it."""

    kind: ClassVar[str] = "sink"
    is_persistent: ClassVar[bool] = True
    """Whether rows stay there; a sink without memory is never asked whether a batch is in."""
    tracks_batches: ClassVar[bool] = True
    """Whether it can tell which batches it holds; one that cannot gets a batch again that was
    cut off before it was done."""

    writes_to: ClassVar[Literal["table", "files", "external"]] = "external"
    """What it writes, for the graph of a project: a Delta table, files, or another system."""

    name: str = ""
    """What the ledger calls this sink; its table or type when left out."""
    input: str = ""
    """The step whose rows are written; the last one when left out."""
    on_failure: Literal["fail", "park"] = "fail"
    """Whether a batch that cannot be committed is parked as Parquet, to be loaded later."""

    def own_name(self) -> str:
        """What this sink is called where its user gave it no name."""
        return self.plugin_type()

    @abstractmethod
    def target(self, project_ctx: ProjectContext) -> TableRef:
        """The table or folder this sink writes."""

    @abstractmethod
    def state(self, project_ctx: ProjectContext, app_id: str) -> SinkState:
        """What stands there now, and the last batch of this writer it holds; no engine."""

    @abstractmethod
    def write(self, ctx: RunContext, frame: DataFrame, batch: BatchWrite) -> CommitInfo:
        """Land the batch; called again with the same batch it changes nothing."""

    @abstractmethod
    def plan(self, ctx: RunContext, frame: DataFrame) -> OutputPlan:
        """What `write` would do, found without writing."""

    def plan_offline(self, project_ctx: ProjectContext) -> OutputPlan:
        """What can be said of the write without looking at rows or tables."""
        return OutputPlan(sink=self.name or self.own_name(), path=self.target(project_ctx).label)

    def verify(self, ctx: RunContext, frame: DataFrame) -> None:
        """Raise what `write` would find wrong with the rows.

        Asked of all sinks before the first is written, so that none gets a batch which another
        refuses; a pipeline with one sink does not need it.
        """
        return

    def violations(self, ctx: RunContext, frame: DataFrame) -> tuple[CheckResult, ...]:
        """Rules of the target itself that rows of the batch would break."""
        return ()

    def undo(self, ctx: RunContext, version: int, batch: BatchWrite, *, apply: bool) -> UndoInfo:
        """Take out what one commit did, if nothing later touched it; else say why not."""
        raise UnsupportedOperation(f"a {self.plugin_type()} sink takes no batch back")

    def maintain(self, ctx: RunContext, user_metadata: str) -> Iterator[MaintenanceResult]:
        """Look after the target once a batch is in it, as far as the file asks for it."""
        return iter(())

    def needs_cached_input(self) -> bool:
        """Whether writing goes over the rows more than once, so that they must be kept."""
        return False

    def may_read_once(self) -> bool:
        """Whether one pass may do after all; where it does not, the sink keeps the rows itself."""
        return False

    def is_append(self) -> bool:
        """Whether landing the same rows as a new batch would add them again."""
        return False

    def adds_each_row(self) -> bool:
        """Whether it counts what it adds, and that is every row it is given."""
        return False

    def why_not_beside(self, columns: Sequence[str]) -> str:
        """Why `beside` has no answer for these columns, as what a sink does; empty when it has."""
        return "cannot tell which of its rows stay"

    def beside(self, ctx: RunContext, frame: DataFrame, columns: Sequence[str]) -> Beside:
        """What of a batch lands, and beside which rows of the target, as far as columns go."""
        raise UnsupportedOperation(f"a {self.plugin_type()} sink cannot tell which rows stay")

    def accepts_late_rows(self) -> bool:
        """Whether a few more rows can be landed beside those that stand, as a batch of theirs."""
        return self.is_append()

    def lock_path(self, project_ctx: ProjectContext) -> str:
        """The folder a writer of this sink must have for itself; empty for none."""
        return ""
