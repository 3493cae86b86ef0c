"""Frames on their way through a plan: counted, kept, and split from what was refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltaworks.contracts.plugin import REJECTED
from deltaworks.engines.spark.errors.lost_jvm import letting_go
from deltaworks.engines.spark.frames.rejects import accepted, is_marked, refused
from deltaworks.engines.spark.frames.row_counter import RowCounter
from deltaworks.errors import InternalError
from deltaworks.pipeline.stages import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Rejects:
    """Rows one stage refused."""

    frame: DataFrame
    stage: str
    kind: str
    """What refused them: the stage as it read or changed rows, or a check of its result."""
    rows: int


@dataclass(kw_only=True)
class Count:
    """How many rows there are: known now, later or never. Steps that keep every row share one."""

    known: int | None = None
    counter: RowCounter | None = None
    doubt: str = ""
    """Why what was counted while rows passed may not be all of them."""

    def rows(self) -> int | None:
        """How many rows; None when nobody could count them."""
        if self.known is None and self.counter is not None and not self.doubt:
            self.known = self.counter.rows()
        return self.known

    def why_unknown(self) -> str:
        """Why nobody could count them; empty when somebody did."""
        if self.rows() is not None:
            return ""
        return self.doubt or "Spark did not read these rows, or nobody counted them"


@dataclass(kw_only=True)
class StepFrame:
    """A step's rows, lazily, and how many they are."""

    frame: DataFrame
    kept: bool = False
    count: Count = field(default_factory=Count)
    holds_rows: bool = False
    """Whether there surely is a row."""
    read: bool = False
    """Whether all its rows have been read, and are kept."""

    def rows(self) -> int | None:
        """How many rows; None when nobody could count them."""
        return self.count.rows()


@dataclass(kw_only=True)
class FrameCache:
    """Keeps frames that are read more than once, and lets them go at the end."""

    kept: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: DataFrame) -> DataFrame:
        """The same rows, evaluated once."""
        held = frame.persist()
        self.kept.append(held)
        return held

    def release(self) -> None:
        """Free what was kept."""
        for frame in self.kept:
            with letting_go():
                frame.unpersist()
        self.kept.clear()


def split(step: StepFrame, stage: Stage, keeper: FrameCache) -> tuple[StepFrame, Rejects | None]:
    """Part the rows a stage accepted from those it marked."""
    from pyspark.sql import functions as F

    if not is_marked(step.frame):
        return step, None
    marked = keeper.keep(step.frame)
    row = marked.agg(
        F.count(F.lit(1)),
        F.count_if(F.col(REJECTED).isNull()),
        F.count_if(F.col(REJECTED).isNotNull()),
    ).collect()[0]
    rows_in, rows_out, rows_refused = int(row[0]), int(row[1]), int(row[2])
    balance(stage.name, rows_in, rows_out + rows_refused)
    if step.count.known is not None:
        balance(stage.name, step.count.known, rows_in)
    step.count.known = rows_in  # of all steps before it, too, that keep every row
    passed = StepFrame(frame=accepted(marked), kept=True, count=Count(known=rows_out), read=True)
    rejects = Rejects(frame=refused(marked), stage=stage.name, kind=stage.kind, rows=rows_refused)
    return passed, rejects


def balance(stage: str, rows_in: int, rows_out: int) -> None:
    """No row may vanish: every one is passed on, quarantined or dropped by name."""
    if rows_in != rows_out:
        raise InternalError(
            f'step "{stage}" took {rows_in:,} rows and accounts for {rows_out:,}; '
            "nothing was written",
            hint="please report this with the pipeline file",
        )
