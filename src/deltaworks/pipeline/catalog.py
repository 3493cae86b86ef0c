"""The pipelines of a project: found by name, and checked against each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deltaworks.config.files import load_document, shown_path
from deltaworks.config.interpolate import Names
from deltaworks.config.project import ProjectConfig
from deltaworks.contracts.context import Site
from deltaworks.errors import ConfigError, DeltaworksError, Problem, SpecError
from deltaworks.pipeline.graph import build_plan
from deltaworks.pipeline.parse import read_pipeline
from deltaworks.pipeline.stages import Plan
from deltaworks.suggest import did_you_mean

_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Catalog:
    """Every plan of a project that could be made, and every problem of those that could not."""

    plans: tuple[Plan, ...]
    problems: tuple[Problem, ...]


def pipeline_files(config: ProjectConfig) -> tuple[Path, ...]:
    """The files that are pipelines, by name."""
    return tuple(sorted(path for path in config.root.glob(config.pipelines) if path.is_file()))


def is_pipeline_file(target: str) -> bool:
    """Whether a word on the command line names a file rather than a pipeline."""
    return target.endswith(_SUFFIXES)


def find_pipeline(config: ProjectConfig, name: str) -> Path:
    """The file of the pipeline with a name."""
    names = {}
    for path in pipeline_files(config):
        try:
            value = load_document(path).value
        except SpecError:
            continue  # `validate` speaks of broken files; here another one is wanted
        if isinstance(value, dict) and isinstance(value.get("pipeline"), str):
            names[value["pipeline"]] = path
    if name not in names:
        where = shown_path(config.root / config.pipelines)
        raise ConfigError(
            f'there is no pipeline "{name}" in {where}', hint=did_you_mean(name, names)
        )
    return names[name]


def load_plan(path: Path, names: Names) -> Plan:
    """The plan of one file; raises with every problem of the file at once."""
    return build_plan(read_pipeline(path, names))


def load_catalog(config: ProjectConfig, paths: Iterable[Path]) -> Catalog:
    """The plans of several files, and every problem in and between them."""
    plans: list[Plan] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            plans.append(load_plan(path, config.names))
        except DeltaworksError as error:
            problems.extend(_placed(problem, path) for problem in error.problems)
    problems.extend(_same_names(plans))
    problems.extend(_nested_tables(config, plans))
    return Catalog(tuple(plans), tuple(problems))


def _placed(problem: Problem, path: Path) -> Problem:
    if problem.file:
        return problem
    return Problem(
        code=problem.code,
        message=problem.message,
        hint=problem.hint,
        file=shown_path(path),
        line=1,
    )


def _same_names(plans: list[Plan]) -> list[Problem]:
    seen: dict[str, str] = {}
    found = []
    for plan in plans:
        pipeline = plan.pipeline
        if pipeline.name in seen:
            found.append(
                Problem(
                    code="twice",
                    message=f'pipeline "{pipeline.name}" stands in {seen[pipeline.name]} too',
                    hint="give one of them another name",
                    file=pipeline.origin.file,
                    line=pipeline.origin.line("pipeline"),
                )
            )
        seen[pipeline.name] = pipeline.origin.file
    return found


def _nested_tables(config: ProjectConfig, plans: list[Plan]) -> list[Problem]:
    """A table inside another table's folder would be eaten by that one's vacuum."""
    site = Site(root=config.root, warehouse=config.warehouse)
    written = {
        load.plugin.target(site).location: (plan, load) for plan in plans for load in plan.loads
    }
    found = []
    for location, (plan, load) in written.items():
        outer = next((other for other in written if location.startswith(f"{other}/")), None)
        if outer is not None:
            inner_label = load.plugin.target(site).label
            outer_label = written[outer][1].plugin.target(site).label
            found.append(
                Problem(
                    code="nested_table",
                    message=f'table "{inner_label}" lies inside table "{outer_label}"',
                    hint="rename one of them, so that no table is in another one's folder",
                    file=plan.pipeline.origin.file,
                    line=load.line,
                )
            )
    return found
