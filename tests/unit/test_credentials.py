"""How plug-ins name credentials, and what is said of a name before anything is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from deltaworks.config.credentials.credential import Credential
from deltaworks.config.credentials.memory import MemoryVault
from deltaworks.config.project import load_project
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.credentials import NeedsCredential
from deltaworks.contracts.source import Source
from deltaworks.errors import SpecError
from deltaworks.model.batch import Bounds
from deltaworks.pipeline.catalog import require_places
from deltaworks.pipeline.graph import build_plan
from deltaworks.pipeline.spec import Pipeline
from deltaworks.sinks.delta import DeltaSink
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RemoteSource(NeedsCredential, Source):
    """A source that would connect."""

    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        raise NotImplementedError

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        raise NotImplementedError


def check(desk: Workbench, name: str, settings: str = "{backend: memory}") -> None:
    desk.write("deltaworks.yaml", f"project: named\nwarehouse: w\ncredentials: {settings}\n")
    source = RemoteSource(credential=name)
    plan = build_plan(Pipeline.build("p", extract=source, load=DeltaSink(table="t")))
    require_places(load_project(desk.root, environ={}), plan)


def test_an_unknown_name_stops_before_anything_is_opened(desk: Workbench) -> None:
    MemoryVault("named").put("crm", Credential(user="bob"))
    check(desk, "crm")
    check(desk, "")
    with pytest.raises(SpecError) as caught:
        check(desk, "crn")
    (problem,) = caught.value.problems
    assert (problem.code, problem.hint) == ("unknown_credential", 'did you mean "crm"?')
    check(desk, "crn", "{backend: hashicorp}")  # only asking would tell


def test_a_name_must_be_one() -> None:
    with pytest.raises(ValidationError, match="expected a name"):
        RemoteSource(credential="user:pass@host")


def test_a_plugin_gets_the_record_from_its_site(desk: Workbench) -> None:
    desk.write("deltaworks.yaml", "project: asked\nwarehouse: w\ncredentials: {backend: memory}\n")
    MemoryVault("asked").put("crm", Credential(user="bob"))
    project_ctx = ProjectContext.of(load_project(desk.root, environ={}))
    assert RemoteSource(credential="crm").connection(project_ctx).user == "bob"
    assert RemoteSource().connection(project_ctx) == Credential()
