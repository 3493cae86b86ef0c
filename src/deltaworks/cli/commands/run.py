"""`deltaworks run`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.options import (
    DebugOption,
    JsonOption,
    ProfileOption,
    ProjectOption,
    QuietOption,
    VarOption,
    complete_pipeline,
    project_folder,
)
from deltaworks.cli.output import print_json, print_run, print_summary
from deltaworks.cli.progress import Progress
from deltaworks.cli.run_options import open_project
from deltaworks.clock import parse_duration
from deltaworks.errors import (
    EXIT_PARKED,
    ConfigError,
    DeltaworksError,
    Interrupted,
    SpecError,
)
from deltaworks.model.results import RunResult, error_document


def run(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|NAME]",
            help="The pipeline to run.",
            autocompletion=complete_pipeline,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Run every pipeline.")] = False,
    select: Annotated[
        str,
        typer.Option(
            "--select",
            metavar="PATTERN",
            help="Run pipelines by name or tag: `sales_*`, `tag:daily`, `+sums`, `raw+`.",
        ),
    ] = "",
    batch_id: Annotated[
        str | None,
        typer.Option("--batch-id", help="Your own name for this batch; it lands at most once."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Append even what the last batch appended.")
    ] = False,
    full_refresh: Annotated[
        bool, typer.Option("--full-refresh", help="Start over: replace what the sinks hold.")
    ] = False,
    drop_history: Annotated[
        bool,
        typer.Option(
            "--drop-history", help="With --full-refresh: drop what the sources no longer hold."
        ),
    ] = False,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="POINT",
            help="Read increments from this version or timestamp on; for Kafka also `earliest`.",
        ),
    ] = "",
    new_sinks: Annotated[
        Literal["ask", "backfill", "from-now"],
        typer.Option("--new-sinks", help="What a sink gets that was added later."),
    ] = "ask",
    parallel: Annotated[
        int,
        typer.Option("--parallel", metavar="N", min=1, help="With --all: so many side by side."),
    ] = 1,
    timeout: Annotated[
        str,
        typer.Option("--timeout", metavar="TIME", help="Stop a run after 90s, 30m or 2h."),
    ] = "",
    follow: Annotated[
        str,
        typer.Option(
            "--follow", metavar="TIME", help="Go on with what is new, looked for every 10s, say."
        ),
    ] = "",
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Run pipelines. A batch lands exactly once; a run that was cut off is finished first."""
    with answering(as_json=as_json, debug=debug):
        many = every or bool(select)
        if many == (target is not None):
            raise ConfigError(
                "say which pipeline to run", hint="deltaworks run NAME, or --all, or --select"
            )
        if parallel > 1 and not many:
            raise ConfigError("--parallel needs several pipelines", hint="add --all or --select")
        if follow and many:
            raise ConfigError("--follow is for one pipeline", hint="start one process for each")
        options: dict[str, Any] = {
            "batch_id": batch_id,
            "again": again,
            "full_refresh": full_refresh,
            "drop_history": drop_history,
            "start": start,
            "new_sinks": new_sinks,
            "timeout": _length("--timeout", timeout),
            "follow": _length("--follow", follow),
        }
        with Progress(quiet=quiet) as progress:

            def opened() -> Project:
                return open_project(project_folder(project, target), profile, var, progress)

            if target is None:
                results = _run_many(opened, select, options, parallel, as_json=as_json)
            else:
                results = (_run_one(opened, target, options),)
        _print(results, many=many, as_json=as_json)
        _end(results)


def _length(option: str, text: str) -> timedelta | None:
    try:
        return parse_duration(text) if text else None
    except ValueError as problem:
        raise ConfigError(f"{option}: {problem}") from None


def _end(results: Sequence[RunResult]) -> None:
    """End as the first run that failed, else as one that parked; Ctrl-C counts more than both."""
    codes = [result.exit_code for result in results if result.exit_code]
    failed = [code for code in codes if code != EXIT_PARKED]
    stops = [code for code in failed if code == Interrupted.exit_code]
    if codes:
        raise typer.Exit((stops or failed or codes)[0])


def _run_many(
    opening: Callable[[], Project],
    pattern: str,
    options: dict[str, Any],
    parallel: int,
    *,
    as_json: bool,
) -> tuple[RunResult, ...]:
    """Run the selected pipelines; none when a file of the project is wrong."""
    try:
        project = opening()
        names = _selected(project, pattern)
    except DeltaworksError as error:
        if not as_json:
            raise
        print_json({"runs": [], "error": error_document(error)})
        raise typer.Exit(error.exit_code) from None
    return project.run_all(*names, parallel=parallel, **options)


def _selected(project: Project, pattern: str) -> tuple[str, ...]:
    """Every pipeline that a pattern covers; every file must be right."""
    from deltaworks.pipeline.selection import selected

    catalog = project.catalog()
    if catalog.problems:
        raise SpecError("the project has problems", problems=catalog.problems)
    return selected(catalog, pattern)


def _run_one(opening: Callable[[], Project], target: str, options: dict[str, Any]) -> RunResult:
    """One run; what stops it before it has an id is told in the same form."""
    from deltaworks.runtime.runs.schedule import failed_before

    try:
        return opening().run(target, **options)
    except DeltaworksError as error:
        return failed_before(Path(target).stem, error)


def _print(results: Sequence[RunResult], *, many: bool, as_json: bool) -> None:
    if as_json:
        documents = [result.to_json() for result in results]
        print_json({"runs": documents} if many else documents[0])
        return
    for result in results:
        print_run(result)
    if many:
        print_summary(results)
