"""How much pipelines will read, found before an engine is up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deltaworks.config.project import ProjectConfig
from deltaworks.contracts.context import Site
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import FILES
from deltaworks.model.table_ref import is_url
from deltaworks.pipeline.locations import places_of
from deltaworks.pipeline.stages import Extract, Load, Plan, Verify
from deltaworks.runtime.ledger.table import Ledger
from deltaworks.runtime.source_bounds import take_bounds


def input_bytes(plans: Sequence[Plan], config: ProjectConfig) -> int | None:
    """Bytes of all files and tables that pipelines look into; None when some are not known."""
    try:
        sizes = [size for plan in plans for size in _sizes(plan, config)]
    except DeltaworksError:
        return None  # the run itself says what is wrong
    known = [size for size in sizes if size is not None]
    return sum(known) if sizes and len(known) == len(sizes) else None


def _sizes(plan: Plan, config: ProjectConfig) -> Iterator[int | None]:
    site = Site.of(config)
    if plan.connectors or any(map(is_url, places_of(plan, site))):
        yield None  # asking a server takes longer than it could save
        return
    ledger = Ledger.open(config.warehouse, project=config.project_id, pipeline=plan.pipeline.name)
    bounds = take_bounds(plan, site, ledger.state())
    for stage in plan.stages:
        if isinstance(stage, Extract) and bounds[stage.name].kind == FILES:
            yield bounds[stage.name].size_bytes
        elif isinstance(stage, Extract | Verify):
            tables = stage.plugin.tables_read(site)
            yield from map(_table_bytes, tables)
            if isinstance(stage, Extract) and not tables:
                yield None
        elif isinstance(stage, Load) and stage.plugin.reads_twice():
            yield _table_bytes(stage.plugin.target(site).location)


def _table_bytes(location: str) -> int | None:
    found = DeltaRsEngine().info(location)
    return 0 if found is None else found.size_bytes
