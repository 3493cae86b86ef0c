"""The pipelines of a project: found by name, and checked against each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePath

from deltaworks.config.credentials.vault import Vault
from deltaworks.config.documents import shown_path
from deltaworks.config.interpolate import Names
from deltaworks.config.project import PROJECT_FILE, ProjectConfig
from deltaworks.contracts.context import ProjectContext
from deltaworks.errors import ConfigError, DeltaworksError, Problem, SpecError
from deltaworks.model.table_ref import OWN_FOLDER, QUARANTINE_SUFFIX, TableRef
from deltaworks.pipeline.graph import build_plan
from deltaworks.pipeline.locations import storage_of
from deltaworks.pipeline.parse import read_document, read_pipeline
from deltaworks.pipeline.spec import Pipeline
from deltaworks.pipeline.stages import Apply, Load, Plan, Stage
from deltaworks.suggest import did_you_mean

_SUFFIXES = (".yaml", ".yml", ".json")
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Catalog:
    """The plans that could be made, writers of a table before its readers, and every problem."""

    plans: tuple[Plan, ...]
    problems: tuple[Problem, ...]
    after: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The pipelines that write what a pipeline reads, where they come before it."""


def pipeline_files(config: ProjectConfig) -> tuple[Path, ...]:
    """The files that are pipelines, by name."""
    patterns = globs(config.pipelines)
    found = {path for pattern in patterns for path in config.root.glob(pattern) if path.is_file()}
    return tuple(sorted(found))


def required_files(config: ProjectConfig) -> tuple[Path, ...]:
    """The files that are pipelines, of which there must be one."""
    if found := pipeline_files(config):
        return found
    _require_project(config)
    raise ConfigError(
        f'no pipeline file matches "{config.pipelines}" in {config.root}',
        hint="write one there, or start with `deltaworks init`",
    )


def _require_project(config: ProjectConfig) -> None:
    """Raise when a folder without a pipeline is no project either: people stand elsewhere."""
    if config.file is None:
        raise ConfigError(
            f"there is no {PROJECT_FILE} here or above, and no pipeline file in {config.root}",
            hint="run `deltaworks init`, or name the folder of the project with --project",
        )


def path_of(config: ProjectConfig, target: str) -> Path:
    """The file of a pipeline that is named by it or by its own name."""
    if not is_pipeline_file(target):
        return find_pipeline(config, target)
    path = Path(target).expanduser()
    inside = config.root / path
    return inside if not path.exists() and inside.exists() else path.absolute()


def globs(text: str) -> tuple[str, ...]:
    """`*.{yaml,json}` as `*.yaml` and `*.json`: a path's own glob knows no braces."""
    match = _BRACES.search(text)
    if match is None:
        return (text,)
    before, after = text[: match.start()], text[match.end() :]
    words = match[1].split(",")
    return tuple(full for word in words for full in globs(f"{before}{word.strip()}{after}"))


def is_pipeline_file(target: str) -> bool:
    """Whether a word on the command line names a file rather than a pipeline."""
    return target.endswith(_SUFFIXES)


def find_pipeline(config: ProjectConfig, name: str) -> Path:
    """The file of the pipeline with a name."""
    names: dict[str, Path] = {}
    broken: list[Problem] = []
    for path in pipeline_files(config):
        try:
            found = name_in(path, config.root)
        except DeltaworksError as error:
            broken.extend(_placed(problem, path) for problem in error.problems)
            continue
        if found:
            other = names.setdefault(found, path)
            if found == name and other != path:
                raise _named_twice(name, other, path)
    if name in names:
        return names[name]
    if not (names or broken):
        _require_project(config)
    if broken:  # the name may stand in a file that cannot be read
        raise SpecError(f'there is no pipeline "{name}" to be found', problems=broken)
    where = shown_path(config.root / config.pipelines)
    hint = did_you_mean(name, names) or "write one, or start with `deltaworks init`"
    raise ConfigError(f'there is no pipeline "{name}" in {where}', hint=hint)


def pipeline_names(config: ProjectConfig) -> tuple[str, ...]:
    """The names of the pipelines whose files can be read."""
    found = []
    for path in pipeline_files(config):
        try:
            found.append(name_in(path, config.root))
        except DeltaworksError:
            continue  # what is wrong with it is told when it is validated or run
    return tuple(filter(None, found))


def plans_of(
    config: ProjectConfig, paths: Sequence[Path], names: Sequence[str]
) -> tuple[Plan, ...]:
    """The plans of the named pipelines, or of all; every file must be right."""
    catalog = load_catalog(config, paths)
    if catalog.problems:
        raise SpecError("the project has problems", problems=catalog.problems)
    known = {plan.pipeline.name: plan for plan in catalog.plans}
    for name in names:
        if name not in known:
            raise ConfigError(f'there is no pipeline "{name}"', hint=did_you_mean(name, known))
    return tuple(plan for name, plan in known.items() if not names or name in names)


def name_in(path: Path, root: Path) -> str:
    """The pipeline's name that a file says; empty when it says none."""
    value = read_document(path, root).document.value
    said = value.get("pipeline") if isinstance(value, dict) else None
    return said if isinstance(said, str) else ""


def _named_twice(name: str, first: Path, second: Path) -> ConfigError:
    return ConfigError(
        f'pipeline "{name}" is defined in {shown_path(first)} and in {shown_path(second)}',
        hint="give one of them another name, or run the file",
    )


def load_plan(path: Path, names: Names, root: Path | None = None) -> Plan:
    """The plan of one file; raises with every problem of the file at once."""
    return build_plan(read_pipeline(path, names, root))


def plan_of(
    config: ProjectConfig,
    target: str | Pipeline,
    names: Names,
    *,
    given: Iterable[str] | None = None,
) -> Plan:
    """The plan of a file, a name or a pipeline in code; variables that it has no use for are wrong.

    Those are the variables that the names say were given, or these.
    """
    if isinstance(target, Pipeline):
        plan = build_plan(target)
    else:
        plan = load_plan(path_of(config, target), names, config.root)
    require_used(names if given is None else replace(names, given=frozenset(given)), [plan])
    require_places(config, plan)
    return plan


def load_catalog(config: ProjectConfig, paths: Iterable[Path]) -> Catalog:
    """The plans of several files, and every problem in and between them."""
    plans: list[Plan] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            plans.append(load_plan(path, config.names, config.root))
        except DeltaworksError as error:
            problems.extend(_placed(problem, path) for problem in error.problems)
    problems.extend(_same_names(plans))
    problems.extend(_place_problems(config, plans))
    problems.extend(_code_problems(ProjectContext.of(config), plans))
    if not problems and (unused := unused_variable(config.names, plans)):
        problems.append(unused)
    project_ctx = ProjectContext.of(config)
    ordered, after = in_order(plans, project_ctx)
    return Catalog(ordered, tuple(problems), after)


def require_places(config: ProjectConfig, plan: Plan) -> None:
    """Raise when a pipeline would write where it must not."""
    reached = replace(config, storage=storage_of(config, plan))
    if problems := _place_problems(reached, [plan]):
        raise SpecError(f'pipeline "{plan.pipeline.name}" is wrong', problems=problems)


def require_used(names: Names, plans: Sequence[Plan]) -> None:
    """Raise when a variable was given that nothing of what is to be done uses."""
    if problem := unused_variable(names, plans):
        raise ConfigError(problem.message, hint=problem.hint)


def unused_variable(names: Names, plans: Sequence[Plan]) -> Problem | None:
    """The first variable that was given and that nothing uses."""
    known = set(names.of_project).union(*(plan.pipeline.origin.variables for plan in plans))
    unused = sorted(names.given - known)
    if not unused:
        return None
    hint = did_you_mean(unused[0], sorted(known)) or "leave it out: there are no variables here"
    return Problem(
        code="unknown_variable", message=f'nothing uses variable "{unused[0]}"', hint=hint
    )


def _place_problems(config: ProjectConfig, plans: list[Plan]) -> list[Problem]:
    return [
        *_nested_tables(config, plans),
        *_reserved_places(config, plans),
        *_unknown_credentials(config, plans),
    ]


def _code_problems(project_ctx: ProjectContext, plans: list[Plan]) -> list[Problem]:
    """What is wrong with code of the project; a step's own problem has the step's line."""
    return [
        problem
        if problem.file
        else replace(problem, file=plan.pipeline.origin.file, line=stage.line)
        for plan in plans
        for stage in plan.stages
        if isinstance(stage, Apply)
        for problem in stage.plugin.code_problems(project_ctx)
    ]


def in_order(
    plans: Sequence[Plan], project_ctx: ProjectContext
) -> tuple[tuple[Plan, ...], dict[str, frozenset[str]]]:
    """The plans, each after those that write what it reads, and the names of those."""
    by_name = {plan.pipeline.name: plan for plan in plans}
    written = [(plan.pipeline.name, ref.location) for plan, _, ref in _written(plans, project_ctx)]
    after = {
        name: {writer for writer, place in written if plan.reads_from(place, project_ctx)} - {name}
        for name, plan in by_name.items()
    }
    try:
        order = list(TopologicalSorter(after).static_order())
    except CycleError:  # pipelines may read each other's last state; then the files' order is kept
        order = list(by_name)
    before = {name: frozenset(after[name] & set(order[:i])) for i, name in enumerate(order)}
    return tuple(by_name[name] for name in order), before


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
        pipeline, name = plan.pipeline, plan.pipeline.name
        if name in seen:
            found.append(
                Problem(
                    code="twice",
                    message=f'pipeline "{name}" is already defined in {seen[name]}',
                    hint="give one of them another name",
                    file=pipeline.origin.file,
                    line=pipeline.origin.line("pipeline"),
                )
            )
        seen[pipeline.name] = pipeline.origin.file
    return found


def _unknown_credentials(config: ProjectConfig, plans: list[Plan]) -> list[Problem]:
    """Names that no place of the vault has, as far as it can tell without opening anything."""
    named = [
        (plan, stage, name)
        for plan in plans
        for stage in plan.stages
        for name in stage.plugin.credentials()
    ]
    vault = config.vault if named or config.storage else Vault()
    found = _unknown_to_stores(config, vault, besides={name for _, _, name in named})
    for plan, stage, name in named:
        if problem := vault.problem(name):
            message, hint = problem
            found.append(_stage_problem("unknown_credential", message, hint, plan, stage))
    return found


def _unknown_to_stores(config: ProjectConfig, vault: Vault, *, besides: set[str]) -> list[Problem]:
    file = shown_path(config.file) if config.file else ""
    told = {
        location: vault.problem(settings.credential)
        for location, settings in config.storage.items()
        if settings.credential and settings.credential not in besides
    }
    return [
        Problem(
            code="unknown_credential",
            message=f'storage "{location}": {problem[0]}',
            hint=problem[1],
            file=file,
        )
        for location, problem in told.items()
        if problem
    ]


def _nested_tables(config: ProjectConfig, plans: list[Plan]) -> list[Problem]:
    """A table inside another table's folder would be eaten by that one's vacuum."""
    project_ctx = ProjectContext.of(config)
    outers = {
        place: PurePath(place).name for plan in plans for place in plan.tables_read(project_ctx)
    }
    outers |= {ref.location: ref.label for _, _, ref in _written(plans, project_ctx)}
    found = []
    for plan, load, ref in _written(plans, project_ctx):
        outer = next((place for place in outers if ref.location.startswith(f"{place}/")), None)
        if outer is not None:
            message = f'table "{ref.label}" lies inside table "{outers[outer]}"'
            hint = "rename one of them, so that no table is in another one's folder"
            found.append(_stage_problem("nested_table", message, hint, plan, load))
    return found


def _reserved_places(config: ProjectConfig, plans: list[Plan]) -> list[Problem]:
    """Our own folder, quarantine tables, and the warehouse itself are not for loads."""
    project_ctx = ProjectContext.of(config)
    found = []
    for plan, load, ref in _written(plans, project_ctx):
        own = f"{config.warehouse}/{OWN_FOLDER}"
        is_own = f"{ref.location}/".startswith(f"{own}/")
        is_quarantine = ref.location.endswith(QUARANTINE_SUFFIX)
        holds_warehouse = f"{config.warehouse}/".startswith(f"{ref.location}/")
        if is_own or is_quarantine or holds_warehouse:
            message = f'"{ref.label}" is a place that Deltaworks keeps for itself'
            found.append(_stage_problem("reserved", message, "choose another path", plan, load))
    return found


def _written(
    plans: Sequence[Plan], project_ctx: ProjectContext
) -> Iterator[tuple[Plan, Load, TableRef]]:
    for plan in plans:
        for load in plan.loads:
            yield plan, load, load.plugin.target(project_ctx)


def _stage_problem(code: str, message: str, hint: str, plan: Plan, stage: Stage) -> Problem:
    file = plan.pipeline.origin.file
    return Problem(code=code, message=message, hint=hint, file=file, line=stage.line)
