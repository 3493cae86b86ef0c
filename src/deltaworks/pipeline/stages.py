"""A plan: the stages of a pipeline in the order they run."""

from __future__ import annotations

from dataclasses import dataclass

from deltaworks.contracts.check import Check
from deltaworks.contracts.context import ProjectContext
from deltaworks.contracts.sink import Sink
from deltaworks.contracts.source import Source
from deltaworks.contracts.transform import Transform
from deltaworks.errors import DeltaworksError
from deltaworks.pipeline.path_globs import reaches
from deltaworks.pipeline.spec import Pipeline


@dataclass(frozen=True, kw_only=True)
class Extract:
    """Read a source."""

    name: str
    plugin: Source
    line: int = 0
    kind: str = "extract"
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Apply:
    """Run a transform; the first input is its own, the others come by name."""

    name: str
    plugin: Transform
    inputs: tuple[str, ...]
    line: int = 0
    kind: str = "transform"


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Run a check on a step's rows; what passes replaces them."""

    name: str
    plugin: Check
    inputs: tuple[str, ...]
    line: int = 0
    kind: str = "check"


@dataclass(frozen=True, kw_only=True)
class Load:
    """Write a step's rows to a sink."""

    name: str
    plugin: Sink
    inputs: tuple[str, ...]
    line: int = 0
    kind: str = "load"


Stage = Extract | Apply | Verify | Load


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What explain shows and a run walks."""

    pipeline: Pipeline
    stages: tuple[Stage, ...]

    @property
    def sources(self) -> tuple[Extract, ...]:
        """The stages that read."""
        return tuple(stage for stage in self.stages if isinstance(stage, Extract))

    @property
    def connectors(self) -> frozenset[str]:
        """The connectors whose jars Spark must have."""
        names = {stage.plugin.connector for stage in self.stages}
        return frozenset(names - {""})

    @property
    def counted_by_sink(self) -> bool:
        """Whether every row read is a row that the one sink adds, so that its count is enough."""
        steps = [stage for stage in self.stages if isinstance(stage, Apply)]
        plain = all(step.plugin.keeps_every_row() and len(step.inputs) == 1 for step in steps)
        checked = any(isinstance(stage, Verify) for stage in self.stages)
        alone = len(self.sources) == len(self.loads) == 1
        return alone and plain and not checked and self.loads[0].plugin.adds_each_row()

    def fingerprint(self, project_ctx: ProjectContext) -> str:
        """Equal for plans that do the same, code of the user's own included."""
        code = {}
        for stage in self.stages:
            if isinstance(stage, Apply):
                try:
                    found = stage.plugin.code_fingerprint(project_ctx)
                except DeltaworksError as error:
                    raise error.at(self.pipeline.origin.file, stage.line) from error.__cause__
                if found:
                    code[stage.name] = found
        return self.pipeline.fingerprint(code)

    def tables_read(self, project_ctx: ProjectContext) -> tuple[str, ...]:
        """Locations of the tables that sources read and checks look into."""
        reading = [stage for stage in self.stages if isinstance(stage, Extract | Verify)]
        return tuple(place for stage in reading for place in stage.plugin.tables_read(project_ctx))

    def reads_from(self, location: str, project_ctx: ProjectContext) -> bool:
        """Whether it reads what stands in a folder, as a table or as files."""
        patterns = (p for stage in self.sources for p in stage.plugin.files_read(project_ctx))
        return location in self.tables_read(project_ctx) or any(
            reaches(pattern, location) for pattern in patterns
        )

    @property
    def loads(self) -> tuple[Load, ...]:
        """The stages that write."""
        return tuple(stage for stage in self.stages if isinstance(stage, Load))
