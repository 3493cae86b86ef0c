"""`deltaworks doctor`."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.options import DebugOption, JsonOption, ProfileOption, ProjectOption
from deltaworks.cli.output import line, print_json
from deltaworks.doctor import Finding, examine, examine_storage
from deltaworks.errors import EXIT_SPEC
from deltaworks.model.table_ref import is_url


def doctor(
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Say what is right and wrong with this machine, and the command that fixes it."""
    with answering(as_json=as_json, debug=debug):
        with Project.open(project, profile=profile) as opened:
            findings = _examined(opened)
        if as_json:
            ok = all(finding.ok for finding in findings)
            print_json({"ok": ok, "findings": [asdict(finding) for finding in findings]})
        else:
            for finding in findings:
                state = "ok " if finding.ok else "BAD"
                line(f"{state} {finding.part:<11} {finding.detail}")
                if finding.fix:
                    line(f"      fix: {finding.fix}")
        if not all(finding.ok for finding in findings):
            raise typer.Exit(EXIT_SPEC)


def _examined(project: Project) -> tuple[Finding, ...]:
    from deltaworks.runtime.diagnostics.cluster import examine_cluster

    warehouse = project.config.warehouse
    place = None if is_url(warehouse) else Path(warehouse)
    return (
        *examine(environ=os.environ, warehouse=place),
        *examine_storage(project.config),
        *examine_cluster(project.config, start=lambda: project.spark),
    )
