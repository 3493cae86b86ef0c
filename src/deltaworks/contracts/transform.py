"""What is done to rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.plugin import Plugin
from deltaworks.errors import Problem

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


LeavesOut = Literal["nothing", "difference", "watched", "unknown"]
"""Which rows a step leaves out: none, those that came in and do not come out, those it counts as
they leave (`left_out`, or the context's `watch_left_out`), or nobody can tell."""


class Transform(Plugin):
    """Turns one frame, and perhaps others by name, into a new one."""

    kind: ClassVar[str] = "transform"
    row_preserving: ClassVar[bool] = False
    """Whether every row in is one row out (or one that the step itself refuses)."""
    drops_rows: ClassVar[bool] = False
    """Whether rows it leaves out count as dropped by this step's name."""
    adds_inputs: ClassVar[bool] = False
    """Whether the rows of its other inputs become rows of its own, as those of the first do."""

    name: str = ""
    """What other steps call this step's result."""
    input: str = ""
    """The step or source to start from; the previous step when left out."""

    def other_inputs(self) -> tuple[str, ...]:
        """Further steps or sources this step reads, by name."""
        return ()

    def keeps_every_row(self) -> bool:
        """Whether this step, with the options it has, is row-preserving."""
        return self.row_preserving

    def columns_known(self) -> bool:
        """Whether its columns are known before rows are read and code of the user's has run."""
        return True

    def left_out(self, frame: DataFrame) -> Column | None:
        """Where this is true a row leaves, and is counted as dropped by this step's name.

        For steps that make several rows of one; those with `drops_rows` are counted as a whole.
        """
        return None

    def leaves_out(self) -> LeavesOut:
        """How the rows are counted that go into this step, with its options, and not out of it."""
        if self.keeps_every_row():
            return "nothing"
        if self.drops_rows:
            return "difference"
        return "unknown" if type(self).left_out is Transform.left_out else "watched"

    def row_wise(self) -> bool:
        """Whether each row out comes from one row in, so that a row may as well come later."""
        return self.keeps_every_row() or self.drops_rows

    def columns_converted(self) -> tuple[str, ...]:
        """Columns whose values may not fit, so that a failure can be traced to one."""
        return ()

    def code_fingerprint(self, project_ctx: ProjectContext) -> str:
        """Tells apart versions of code that the step runs and the pipeline file does not hold."""
        return ""

    def code_problems(self, project_ctx: ProjectContext) -> tuple[Problem, ...]:
        """What is wrong with code that the step runs, found without running it.

        A problem without a place is one of the step itself.
        """
        return ()

    @abstractmethod
    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        """The new frame, lazily; refused rows are marked, never dropped."""
