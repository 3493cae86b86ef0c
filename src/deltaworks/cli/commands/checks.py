"""`deltaworks checks`: what the checks of a pipeline found, run by run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.options import (
    DebugOption,
    JsonOption,
    ProfileOption,
    ProjectOption,
    project_folder,
)
from deltaworks.cli.output import line, print_json, print_table

if TYPE_CHECKING:
    from deltaworks.runtime.run_records import CheckRecord


def checks(
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="Its name or its file.")],
    check: Annotated[str, typer.Option("--check", help="Only the check of this name.")] = "",
    last: Annotated[int, typer.Option("--last", min=1, help="How many runs.")] = 10,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what checks found in the last runs, newest last."""
    with answering(as_json=as_json, debug=debug):
        opened = Project.open(project_folder(project, pipeline), profile=profile)
        found = opened.checks(pipeline, check=check, last=last)
        if as_json:
            name = opened.pipeline_name(pipeline)
            print_json({"pipeline": name, "checks": [record.to_json() for record in found]})
        elif not found:
            line("no run has recorded a check")
        else:
            _print(found)


def _print(records: tuple[CheckRecord, ...]) -> None:
    names = ("run", "at", "step", "check", "rows", "failed", "result")
    print_table(names, [_row(record) for record in records])


def _row(record: CheckRecord) -> tuple[object, ...]:
    found = record.check
    passed = "passed" if found["passed"] else f"failed ({found['on_fail']})"
    return (
        record.run_id,
        f"{record.at:%Y-%m-%d %H:%M:%S}",
        found.get("step"),
        record.name,
        found.get("rows_checked"),
        found.get("rows_failed"),
        passed,
    )
