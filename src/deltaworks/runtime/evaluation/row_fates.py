"""What became of the rows that came into each step: passed on, refused, or left out by its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltaworks.model.results import StepResult
from deltaworks.pipeline.stages import Apply, Stage
from deltaworks.runtime.evaluation.frames import Count, StepFrame


@dataclass(frozen=True, kw_only=True)
class Passed:
    """One step that was walked: what came in, what it made of it, and how long that took."""

    stage: Stage
    came: tuple[Count, ...]
    """The rows of its inputs that it took; of a source, those that were read."""
    step: StepFrame
    """The rows it passed on."""
    duration_s: float
    rows_refused: int = 0
    rows_dropped: int = 0
    """By a check; a transform says itself how its own are counted."""
    left_out: Count | None = None
    """Rows that a transform watched as they left."""
    was_applied: bool = False
    """Whether a transform saw the rows; those that come back may enter after it."""

    def rows_in(self) -> int | None:
        """Rows that came into the step."""
        return total(count.rows() for count in self.came)

    def result(self) -> StepResult:
        """The step for the result; rows are asked for now, when they have passed."""
        dropped, why = self._dropped()
        found = StepResult(
            name=self.stage.name,
            type=self.stage.plugin.plugin_type(),
            rows_in=self.rows_in(),
            rows=self.step.rows(),
            rows_quarantined=self.rows_refused,
            rows_dropped=dropped,
            duration_s=self.duration_s,
            uncounted=why or self._unknown(),
        )
        return self._balanced(found)

    def _unknown(self) -> str:
        counts = (*self.came, self.step.count)
        return next((why for count in counts if (why := count.why_unknown())), "")

    def _dropped(self) -> tuple[int | None, str]:
        """Rows that the step left out, or why nobody can tell how many."""
        if not isinstance(self.stage, Apply) or not self.was_applied:
            return self.rows_dropped, ""
        leaves_out = self.stage.plugin.leaves_out()
        if leaves_out == "nothing":
            return 0, ""
        if leaves_out == "difference":
            return self._difference(), ""
        if leaves_out == "watched":
            return self._watched()
        kind = self.stage.plugin.plugin_type()
        return None, f"nobody can tell which rows a {kind} step leaves out"

    def _difference(self) -> int | None:
        came, went = self.rows_in(), self.step.rows()
        return None if came is None or went is None else came - went - self.rows_refused

    def _watched(self) -> tuple[int | None, str]:
        if self.left_out is None:
            return None, "it would take longer to count the rows without a match than to join"
        return self.left_out.rows(), self.left_out.why_unknown()

    def _balanced(self, found: StepResult) -> StepResult:
        """The same where every row in is accounted for; else without the counts of rows left out.

        Spark counts rows while they pass. When it lost work and did it again, it counted twice.
        """
        known = (found.rows_in, found.rows, found.rows_dropped)
        if None in known or not self._accounts_for_all():
            return found
        rows_in, rows, dropped = (count or 0 for count in known)
        if rows_in == rows + self.rows_refused + dropped and dropped >= 0:
            return found
        why = f"{rows_in:,} rows came in, and Spark counted {rows + self.rows_refused:,} afterwards"
        return StepResult(
            name=found.name,
            type=found.type,
            rows_in=None,
            rows=None,
            rows_quarantined=found.rows_quarantined,
            rows_dropped=None,
            duration_s=found.duration_s,
            uncounted=why,
            unbalanced=True,
        )

    def _accounts_for_all(self) -> bool:
        """Whether each row that comes in is one that goes out, is refused, or is left out."""
        if not isinstance(self.stage, Apply):
            return True
        plugin = self.stage.plugin
        is_counted = plugin.leaves_out() == "difference" or plugin.adds_inputs
        return plugin.keeps_every_row() or is_counted


def total(counts: Iterable[int | None]) -> int | None:
    """The sum; None when one of them is not known."""
    found = 0
    for count in counts:
        if count is None:
            return None
        found += count
    return found


def rows_dropped(steps: Sequence[StepResult]) -> tuple[int | None, str]:
    """Rows that all steps left out, or why nobody can tell how many."""
    unknown = [step for step in steps if step.rows_dropped is None]
    if unknown:
        return None, f'step "{unknown[0].name}": {unknown[0].uncounted}'
    return total(step.rows_dropped for step in steps), ""
