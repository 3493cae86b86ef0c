"""`deltaworks test`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from deltaworks.cli.boundary import answering
from deltaworks.cli.options import (
    DebugOption,
    JsonOption,
    ProfileOption,
    ProjectOption,
    QuietOption,
    VarOption,
    complete_pipeline,
)
from deltaworks.cli.output import line, print_json
from deltaworks.cli.progress import Progress
from deltaworks.cli.run_options import open_project
from deltaworks.errors import EXIT_DATA
from deltaworks.model.results import CaseFailure, CaseResult

_MAX_ROWS = 10


def run_tests(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|NAME]...",
            help="Files, pipelines or names of tests; all tests when left out.",
            autocompletion=complete_pipeline,
        ),
    ] = None,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Run the tests in tests/*.yaml: rows in, rows out. The warehouse is not touched."""
    with answering(as_json=as_json, debug=debug):
        with Progress(quiet=quiet) as progress:
            results = open_project(project, profile, var, progress).test(*(targets or []))
        if as_json:
            print_json(_document(results))
        else:
            _print(results)
        if not all(result.passed for result in results):
            raise typer.Exit(EXIT_DATA)


def _document(results: Sequence[CaseResult]) -> dict[str, Any]:
    passed = sum(result.passed for result in results)
    return {
        "ok": passed == len(results),
        "passed": passed,
        "failed": len(results) - passed,
        "tests": [result.to_json() for result in results],
    }


def _print(results: Sequence[CaseResult]) -> None:
    for result in results:
        state = "ok  " if result.passed else "FAIL"
        line(f"{state}  {result.pipeline}: {result.name} ({result.duration_s:.1f} s)")
        for failure in result.failures:
            _print_failure(result, failure)
    count, passed = len(results), sum(result.passed for result in results)
    seconds = sum(result.duration_s for result in results)
    tests = f"{count} test{'' if count == 1 else 's'}"
    line(f"{tests}: {passed} passed, {count - passed} failed in {seconds:.1f} s")


def _print_failure(result: CaseResult, failure: CaseFailure) -> None:
    first, *more = failure.message.splitlines()
    place = f"{result.file}:{result.line}: {failure.what}: "
    line(f"  {'' if failure.what == 'test' else place}{first}")
    for text in more:
        line(f"  {text}")
    for sign, rows in (("-", failure.missing), ("+", failure.unexpected)):
        for row in rows[:_MAX_ROWS]:
            line(f"    {sign} {json.dumps(row, ensure_ascii=False)}")
        if len(rows) > _MAX_ROWS:
            line(f"    {sign} ... {len(rows) - _MAX_ROWS:,} more")
