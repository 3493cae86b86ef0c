"""What came of trying to reach something that a project reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

ProbeKind = Literal["store", "credential", "source", "path"]
Reason = Literal[
    "dns",
    "refused",
    "timeout",
    "tls",
    "auth",
    "missing_bucket",
    "no_permission",
    "missing",
    "other",
]
"""Why something cannot be reached, for programs; people read the message."""


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """One thing that was tried: what was found there, or why nothing was."""

    name: str
    kind: ProbeKind
    latency_ms: float
    found: str = ""
    reason: Reason | Literal[""] = ""
    message: str = ""
    hint: str = ""
    exit_code: int = 0

    @property
    def ok(self) -> bool:
        """Whether it was reached."""
        return not self.reason

    def to_json(self) -> dict[str, Any]:
        document = asdict(self)
        del document["exit_code"]
        return {"ok": self.ok, **document}
