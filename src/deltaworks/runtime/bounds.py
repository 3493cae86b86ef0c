"""What the sources of a plan hold now, and whether they still hold what they did."""

from __future__ import annotations

from collections.abc import Mapping

from deltaworks.contracts.context import Site
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import Bounds
from deltaworks.pipeline.stages import Plan


def take_bounds(plan: Plan, site: Site) -> dict[str, Bounds]:
    """The bounds of every source, found without an engine."""
    found = {}
    for stage in plan.sources:
        try:
            found[stage.name] = stage.plugin.bounds(site, None)
        except DeltaworksError as error:
            raise error.at(plan.pipeline.origin.file, stage.line) from error.__cause__
    return found


def why_gone(plan: Plan, site: Site, bounds: Mapping[str, Bounds]) -> str:
    """Why recorded bounds cannot be read again identically; empty when they can."""
    sources = {stage.name: stage.plugin for stage in plan.sources}
    for name, recorded in bounds.items():
        if name not in sources:
            return f'source "{name}" is no longer in the pipeline'
        if problem := sources[name].still_there(site, recorded):
            return problem
    return ""
