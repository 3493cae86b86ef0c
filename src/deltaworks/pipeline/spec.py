"""A pipeline: extract, transform, check, load."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from deltaworks.config.classic_messages import reworded
from deltaworks.contracts.check import Check
from deltaworks.contracts.sink import Sink
from deltaworks.contracts.source import Source
from deltaworks.contracts.tolerance import Tolerance, tolerance
from deltaworks.contracts.transform import Transform
from deltaworks.errors import DeltaworksError

ONLY_SOURCE = "source"


@dataclass(frozen=True)
class Origin:
    """Where a pipeline was written down."""

    file: str = ""
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    """How the file spells options, where that is not the native way."""
    variables: frozenset[str] = frozenset()
    """The variables that the file declares or uses."""

    def line(self, *where: str | int) -> int:
        """The line of a part, or of the nearest thing around it."""
        place = where
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1 if self.file else 0)

    @contextmanager
    def wording(self) -> Iterator[None]:
        """What is raised inside speaks of options in the words of the file."""
        try:
            yield
        except DeltaworksError as error:
            error.message = reworded(error.message, self.words)
            error.hint = reworded(error.hint, self.words)
            raise


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """What the user wrote, as typed values; built by the parser or in code."""

    name: str
    extract: Mapping[str, Source]
    load: tuple[Sink, ...]
    transform: tuple[Transform, ...] = ()
    checks: tuple[Check, ...] = ()
    description: str = ""
    tags: tuple[str, ...] = ()
    """Words by which `run --select tag:...` finds it; they change nothing else."""
    audit_columns: bool = False
    """Whether rows of Delta tables say which run and batch wrote them."""
    max_failed: Tolerance | None = None
    """How many rows of a batch may go into quarantine in all; more stop the run."""
    origin: Origin = field(default_factory=Origin, compare=False)

    @staticmethod
    def build(
        name: str,
        *,
        extract: Source | Mapping[str, Source],
        load: Sink | Iterable[Sink],
        transform: Iterable[Transform] = (),
        checks: Iterable[Check] = (),
        description: str = "",
        tags: Iterable[str] = (),
        audit_columns: bool = False,
        max_failed: int | str | None = None,
    ) -> Pipeline:
        """A pipeline in code, from the very classes a file names by their types."""
        return Pipeline(
            name=name,
            extract={ONLY_SOURCE: extract} if isinstance(extract, Source) else dict(extract),
            transform=tuple(transform),
            checks=tuple(checks),
            load=(load,) if isinstance(load, Sink) else tuple(load),
            description=description,
            tags=tuple(tags),
            audit_columns=audit_columns,
            max_failed=None if max_failed is None else tolerance(max_failed),
        )

    def document(self) -> dict[str, Any]:
        """The native form of the pipeline, defaults left out."""
        return {
            "pipeline": self.name,
            "extract": {name: source.document() for name, source in self.extract.items()},
            "transform": [step.document() for step in self.transform],
            "checks": [check.document() for check in self.checks],
            "load": [sink.document() for sink in self.load],
            **({"audit_columns": True} if self.audit_columns else {}),
            **({"max_failed": str(self.max_failed)} if self.max_failed else {}),
        }

    def fingerprint(self, code: Mapping[str, str] | None = None) -> str:
        """Equal for pipelines that do the same; `code` is what steps run besides the file."""
        document = self.document()
        if code:
            document["code"] = dict(code)
        for check in document["checks"]:
            check.pop("description", None)  # words change nothing
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]
