"""What must hold of rows before they are published."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.plugin import Plugin
from deltaworks.contracts.tolerance import MaxFailed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from deltaworks.contracts.sink import Beside


@dataclass(frozen=True)
class Measurement:
    """What a table check saw."""

    passed: bool
    detail: str
    rows: int | None = None


class Check(Plugin):
    """A rule, and what happens when it does not hold."""

    kind: ClassVar[str] = "check"

    name: str = ""
    """What the results call this check; its rule when left out."""
    description: str = ""
    """Why the rule is there, in words; kept with its results."""
    input: str = ""
    """The step whose rows are checked; the last one when left out."""

    def rule_text(self) -> str:
        """The rule in a few words."""
        return self.name or self.plugin_type()

    def columns_used(self) -> tuple[str, ...]:
        """Columns the rule names outright, so that a missing one is named."""
        return ()

    def tables_read(self, project_ctx: ProjectContext) -> tuple[str, ...]:
        """Locations of further tables the rule looks into."""
        return ()


class RowCheck(Check):
    """Holds or not for each row. NULL is a failure unless the rule says otherwise."""

    on_fail: Literal["fail", "warn", "quarantine", "drop"] = "fail"
    """What happens to rows that fail: stop the run, go on, quarantine, or leave out."""
    max_failed: MaxFailed = None
    """How many rows may fail, such as `10` or `0.1%`; quarantined rows stop the run beyond it."""

    @abstractmethod
    def condition(self, ctx: RunContext, frame: DataFrame) -> Column:
        """True for rows that pass; false or NULL for rows that do not."""

    def row_wise(self) -> bool:
        """Whether a row is judged by its own values, whatever other rows there are."""
        return False

    def looks_at_targets(self) -> bool:
        """Whether a row is judged together with those that stay in the tables it goes to.

        Such a check comes after the others and sees what they let pass; it takes no row out.
        """
        return False

    def condition_beside(
        self, ctx: RunContext, frame: DataFrame, targets: Sequence[Beside]
    ) -> Column:
        """The same for rows that land beside those that stay in each target."""
        return self.condition(ctx, frame)


class TableCheck(Check):
    """Holds or not for the rows as a whole."""

    on_fail: Literal["fail", "warn"] = "fail"
    """What happens when it does not hold: stop the run, or go on with a warning."""

    @abstractmethod
    def measure(self, ctx: RunContext, frame: DataFrame) -> Measurement:
        """Look at the rows once and judge them."""
