"""Deltaworks: data pipelines on Delta Lake, run by Spark, that land every batch exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.version import __version__

if TYPE_CHECKING:
    from deltaworks.api import Project
    from deltaworks.pipeline.spec import Pipeline

__all__ = ["Pipeline", "Project", "__version__"]


def __getattr__(name: str) -> object:
    """Load the facade when it is asked for, so that importing the package stays cheap."""
    if name == "Project":
        from deltaworks.api import Project

        return Project
    if name == "Pipeline":
        from deltaworks.pipeline.spec import Pipeline

        return Pipeline
    raise AttributeError(f"module 'deltaworks' has no attribute {name!r}")
