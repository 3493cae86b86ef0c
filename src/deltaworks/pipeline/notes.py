"""What may be meant, and may be a mistake: tables that are not there, circles of pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from deltaworks.config.documents import shown_path
from deltaworks.config.project import ProjectConfig
from deltaworks.contracts.context import ProjectContext
from deltaworks.errors import Problem
from deltaworks.model.table_ref import is_url
from deltaworks.pipeline.catalog import Catalog, load_catalog, pipeline_files
from deltaworks.pipeline.project_graph import project_graph, table_label
from deltaworks.pipeline.stages import Extract, Plan, Verify
from deltaworks.suggest import did_you_mean


def catalog_notes(config: ProjectConfig, catalog: Catalog) -> tuple[Problem, ...]:
    """Notes on the plans of a catalog, as seen among all pipelines of the project.

    Where a file has problems, it is not known what it writes, and nothing is noted.
    """
    known = {plan.pipeline.origin.file for plan in catalog.plans}
    others = [path for path in pipeline_files(config) if shown_path(path) not in known]
    beside = load_catalog(config, others)
    if catalog.problems or beside.problems:
        return ()
    project_ctx, among = ProjectContext.of(config), (*catalog.plans, *beside.plans)
    return (
        *_circle(catalog.plans, among, project_ctx),
        *_missing_tables(catalog.plans, among, project_ctx),
    )


def _circle(
    plans: Sequence[Plan], among: Sequence[Plan], project_ctx: ProjectContext
) -> Iterator[Problem]:
    circle = project_graph(among, project_ctx).circle
    first = next((plan for plan in plans if plan.pipeline.name in circle), None)
    if first is not None:
        origin = first.pipeline.origin
        yield Problem(
            code="circle",
            message=f"these pipelines read each other's tables: {' -> '.join(circle)}",
            hint="each run reads what the others wrote last; break the circle if that is not meant",
            file=origin.file,
            line=origin.line("extract"),
        )


def _missing_tables(
    plans: Sequence[Plan], among: Sequence[Plan], project_ctx: ProjectContext
) -> Iterator[Problem]:
    targets = [load.plugin.target(project_ctx) for plan in among for load in plan.loads]
    written = {target.location for target in targets}
    choices = sorted({target.label for target in targets})
    for plan in plans:
        for stage in plan.stages:
            if not isinstance(stage, Extract | Verify):
                continue
            for location in stage.plugin.tables_read(project_ctx):
                if location in written or is_url(location) or _is_table(location):
                    continue
                label = table_label(location, project_ctx)
                near = did_you_mean(label, choices)
                yield Problem(
                    code="unknown_table",
                    message=f'table "{label}" does not exist, and no pipeline writes it',
                    hint=near if near.startswith("did") else "create it before the first run",
                    file=plan.pipeline.origin.file,
                    line=stage.line,
                )


def _is_table(location: str) -> bool:
    return (Path(location) / "_delta_log").is_dir()
