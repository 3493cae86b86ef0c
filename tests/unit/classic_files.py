"""Classic files, written for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deltaworks.config.interpolate import Names
from deltaworks.errors import Problem, SpecError
from deltaworks.pipeline.parse import read_document, read_pipeline

NAMES = Names({"day": "2026-01-01"}, {})
DELTA = {"sinkType": "DeltaLake", "connectionParams": {"path": "out"}}
CSV = {"sourceType": "File", "connectionParams": {"format": "csv", "path": "in.csv"}}


def classic(
    extract: Any = None, load: Any = None, transform: Any = None, **more: Any
) -> dict[str, Any]:
    steps = {} if transform is None else {"transform": transform}
    return {"pipelineId": "p", "extract": extract or CSV, **steps, "load": load or DELTA, **more}


def source(system: str, beside: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    return {"sourceType": system, "connectionParams": params, **(beside or {})}


def sink(system: str, beside: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    return {"sinkType": system, "connectionParams": params, **(beside or {})}


def save(folder: Path, document: Any, name: str = "p.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return file


def native(folder: Path, document: Any) -> dict[str, Any]:
    """The native form of a document in which nothing is wrong."""
    read = read_document(save(folder, document))
    assert read.problems == ()
    value: dict[str, Any] = read.document.value
    return value


def problems(folder: Path, document: Any) -> tuple[Problem, ...]:
    with pytest.raises(SpecError) as caught:
        read_pipeline(save(folder, document), NAMES)
    return caught.value.problems
