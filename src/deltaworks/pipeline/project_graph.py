"""The graph of a project: which pipeline reads and writes which data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from deltaworks.contracts.context import ProjectContext
from deltaworks.model.table_ref import is_url
from deltaworks.pipeline.path_globs import reaches
from deltaworks.pipeline.stages import Extract, Load, Plan

_MERMAID_SHAPES = {"table": ('[("', '")]'), "files": ('[/"', '"/]'), "external": ('(["', '"])')}


@dataclass(frozen=True, kw_only=True, order=True)
class DataNode:
    """Something that pipelines read or write: a table, files, or data of another system."""

    name: str
    kind: str
    """`table`, `files` or `external`."""

    def to_json(self) -> dict[str, Any]:
        """The node as a JSON document."""
        return {"name": self.name, "kind": self.kind}


@dataclass(frozen=True, kw_only=True)
class PipelineNode:
    """A pipeline with the data at its two ends."""

    name: str
    file: str
    reads: tuple[DataNode, ...]
    writes: tuple[DataNode, ...]


@dataclass(frozen=True, kw_only=True)
class ProjectGraph:
    """The pipelines of a project in the order in which they run, and circles among them."""

    pipelines: tuple[PipelineNode, ...]
    circle: tuple[str, ...] = ()
    """Pipelines that read each other's tables, the first one repeated at the end."""

    def writers(self, node: DataNode) -> tuple[str, ...]:
        """The pipelines that write a node."""
        return tuple(one.name for one in self.pipelines if node in one.writes)

    def readers(self, node: DataNode) -> tuple[str, ...]:
        """The pipelines that read a node."""
        return tuple(one.name for one in self.pipelines if node in one.reads)

    def unwritten(self) -> tuple[DataNode, ...]:
        """Tables that pipelines read and no pipeline of the project writes."""
        tables = {node for one in self.pipelines for node in one.reads if node.kind == "table"}
        return tuple(sorted(node for node in tables if not self.writers(node)))

    def to_json(self) -> dict[str, Any]:
        """The graph as a JSON document."""
        return {
            "pipelines": [
                {
                    "name": one.name,
                    "file": one.file,
                    "reads": [
                        {**node.to_json(), "written_by": list(self.writers(node))}
                        for node in one.reads
                    ],
                    "writes": [
                        {**node.to_json(), "read_by": list(self.readers(node))}
                        for node in one.writes
                    ],
                }
                for one in self.pipelines
            ],
            "circle": list(self.circle),
            "unwritten_tables": [node.name for node in self.unwritten()],
        }


def project_graph(plans: Sequence[Plan], project_ctx: ProjectContext) -> ProjectGraph:
    """The graph of some plans, given in the order in which they run."""
    targets = {
        load.plugin.target(project_ctx).location: _write_node(load, project_ctx)
        for plan in plans
        for load in plan.loads
    }
    nodes = tuple(_pipeline_node(plan, project_ctx, targets) for plan in plans)
    return ProjectGraph(pipelines=nodes, circle=_circle(nodes))


def mermaid(graph: ProjectGraph) -> str:
    """The graph as a Mermaid flowchart."""
    data = sorted({node for one in graph.pipelines for node in (*one.reads, *one.writes)})
    ids = {node: f"d{n}" for n, node in enumerate(data, 1)}
    lines = ["flowchart LR"]
    for node, name in ids.items():
        opening, closing = _MERMAID_SHAPES[node.kind]
        lines.append(f"    {name}{opening}{_mermaid_text(node.name)}{closing}")
    for n, one in enumerate(graph.pipelines, 1):
        lines.append(f'    p{n}["{_mermaid_text(one.name)}"]')
        lines += [f"    {ids[node]} --> p{n}" for node in one.reads]
        lines += [f"    p{n} --> {ids[node]}" for node in one.writes]
    return "\n".join(lines)


def _pipeline_node(
    plan: Plan, project_ctx: ProjectContext, targets: Mapping[str, DataNode]
) -> PipelineNode:
    reads = [node for stage in plan.sources for node in _read_nodes(stage, project_ctx, targets)]
    named = {node.name for node in reads}
    checked = (_table_node(place, project_ctx, targets) for place in plan.tables_read(project_ctx))
    reads += [node for node in checked if node.name not in named]
    writes = [_write_node(load, project_ctx) for load in plan.loads]
    return PipelineNode(
        name=plan.pipeline.name,
        file=plan.pipeline.origin.file,
        reads=_unique(reads),
        writes=_unique(writes),
    )


def _read_nodes(
    stage: Extract, project_ctx: ProjectContext, targets: Mapping[str, DataNode]
) -> list[DataNode]:
    tables = [
        _table_node(place, project_ctx, targets) for place in stage.plugin.tables_read(project_ctx)
    ]
    files = []
    for pattern in stage.plugin.files_read(project_ctx):
        written = [node for place, node in targets.items() if reaches(pattern, place)]
        files += written or [DataNode(name=_short(pattern, project_ctx), kind="files")]
    if tables or files:
        return [*tables, *files]
    return [DataNode(name=f"{stage.plugin.plugin_type()}: {stage.name}", kind="external")]


def _table_node(
    location: str, project_ctx: ProjectContext, targets: Mapping[str, DataNode]
) -> DataNode:
    if location in targets:
        return targets[location]
    return DataNode(name=table_label(location, project_ctx), kind="table")


def table_label(location: str, project_ctx: ProjectContext) -> str:
    """A table as the project's files would name it."""
    inside = location.removeprefix(f"{project_ctx.warehouse}/")
    return inside.replace("/", ".") if inside != location else _short(location, project_ctx)


def _write_node(load: Load, project_ctx: ProjectContext) -> DataNode:
    return DataNode(name=load.plugin.target(project_ctx).label, kind=load.plugin.writes_to)


def _short(path: str, project_ctx: ProjectContext) -> str:
    """A path as the project's files would write it."""
    if is_url(path) or not Path(path).is_relative_to(project_ctx.root):
        return path
    return str(Path(path).relative_to(project_ctx.root))


def _circle(nodes: Iterable[PipelineNode]) -> tuple[str, ...]:
    nodes = tuple(nodes)
    after = {
        one.name: {other.name for other in nodes if set(other.writes) & set(one.reads)} - {one.name}
        for one in nodes
    }
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def _unique(nodes: Iterable[DataNode]) -> tuple[DataNode, ...]:
    return tuple(dict.fromkeys(nodes))


def _mermaid_text(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
