"""How many rows a batch may quarantine: limits of steps and of the whole run, and a warning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from deltaworks.contracts.tolerance import Tolerance
from deltaworks.errors import QualityError
from deltaworks.pipeline.stages import Apply, Plan
from deltaworks.runtime.evaluation.evaluator import Evaluation
from deltaworks.runtime.evaluation.row_fates import total

_WARNED = Tolerance(percent=Decimal(10))
"""A run that quarantines more than this share of its rows says so, whatever is allowed."""


@dataclass(frozen=True, kw_only=True)
class Excess:
    """A limit that was passed."""

    message: str
    line: int

    def error(self, file: str) -> QualityError:
        """The error that stops the run before anything is written."""
        hint = "correct the rows, or allow more with `max_failed`; nothing was written"
        return QualityError(self.message, hint=hint, file=file, line=self.line)


def excesses(plan: Plan, walked: Evaluation) -> Iterator[Excess]:
    """Every limit that a batch passes, in the order of its steps; that of the run comes last."""
    for one in walked.passed:
        limit = getattr(one.stage.plugin, "max_failed", None)
        if one.stage.kind == "check" or not isinstance(limit, Tolerance):
            continue
        rows_in = one.rows_in() or 0
        if not limit.allows(one.rows_refused, of=rows_in):
            told = f"{one.rows_refused:,} of {rows_in:,} rows do not fit, {limit} allowed"
            yield Excess(message=f'step "{one.stage.name}": {told}', line=one.stage.line)
    limit, refused = plan.pipeline.max_failed, walked.rows_quarantined()
    if limit is not None and refused and not limit.allows(refused, of=_rows_of(plan, walked)):
        told = f"{refused:,} of {_rows_of(plan, walked):,} rows would go into quarantine"
        line = plan.pipeline.origin.line("max_failed")
        yield Excess(message=f"{told}, {limit} allowed", line=line)


def warning(plan: Plan, walked: Evaluation) -> str:
    """What to say of a batch that quarantines a large share of its rows; empty for a small one."""
    refused = walked.rows_quarantined()
    rows = _rows_of(plan, walked) if refused else 0
    if _WARNED.allows(refused, of=rows):
        return ""
    share = f"{100 * refused / rows:.0f}%" if rows else "all"
    return f"{refused:,} of {rows:,} rows ({share}) go into quarantine"


def _rows_of(plan: Plan, walked: Evaluation) -> int:
    """The rows that those in quarantine were read with: of their sources, not of any looked up."""
    refusing = [one for one in walked.passed if one.rows_refused]
    names = {name for one in refusing for name in _origins(plan, one.stage.name)}
    found = [step for name, step in walked.sources.items() if name in names]
    read = total(step.rows() for step in found or walked.sources.values())
    if read is not None:
        return read
    return max((one.rows_in() or 0 for one in refusing), default=0)


def _origins(plan: Plan, name: str) -> set[str]:
    """The sources whose rows reach a step, or the step that a check looks at."""
    names, found = {name}, set()
    for stage in reversed(plan.stages):
        if stage.name not in names:
            continue
        adds = isinstance(stage, Apply) and stage.plugin.adds_inputs
        names |= set(stage.inputs if adds else stage.inputs[:1])
        if not stage.inputs:
            found.add(stage.name)
    return found
