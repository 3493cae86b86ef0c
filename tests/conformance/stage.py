"""Plug-ins by kind and type, and what they are run with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.plugin import Plugin
from deltaworks.contracts.registry import PACKAGES, find_plugin, plugin_types

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLUGINS = [(kind, name) for kind in PACKAGES for name in plugin_types(kind)]
each_plugin = pytest.mark.parametrize(
    ("kind", "name"), PLUGINS, ids=[f"{kind}-{name}" for kind, name in PLUGINS]
)


SERVED = frozenset(("jdbc", "kafka", "mysql", "postgres"))
"""Plug-ins that do nothing without a server; tests/services tries them beside a real one."""
each_at_home = pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, name in PLUGINS if name not in SERVED]
)


def types_at_home(kind: str) -> list[str]:
    """The types of a kind that need no server."""
    return [name for name in plugin_types(kind) if name not in SERVED]


def each_of(kind: str) -> pytest.MarkDecorator:
    """Every plug-in of a kind that needs no server."""
    return pytest.mark.parametrize("name", types_at_home(kind))


def plugin_class(kind: str, name: str) -> type[Plugin]:
    found = find_plugin(kind, name)
    assert found is not None
    return found


def example(kind: str, name: str) -> dict[str, Any]:
    """The options a plug-in shows as its example."""
    options = dict(plugin_class(kind, name).example)
    assert options, f"{kind} {name} shows no example"
    return options


def made(kind: str, type_name: str, **more: Any) -> Any:
    """The plug-in with its example's options."""
    return plugin_class(kind, type_name).model_validate({**example(kind, type_name), **more})


def context(spark: SparkSession, root: Path) -> RunContext:
    project_ctx = ProjectContext(root=root, warehouse=str(root / "warehouse"))
    return RunContext(
        project_ctx=project_ctx, spark=spark, run_id="run", now=datetime(2026, 1, 1, tzinfo=UTC)
    )


class Jobs:
    """How many Spark jobs were started."""

    count = 0


@contextmanager
def counted_jobs(spark: SparkSession) -> Iterator[Jobs]:
    """Count the Spark jobs that the body starts."""
    group, jobs, context = uuid4().hex, Jobs(), spark.sparkContext
    context.setJobGroup(group, "conformance")
    try:
        yield jobs
        jobs.count = len(context.statusTracker().getJobIdsForGroup(group))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
