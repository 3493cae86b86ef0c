"""Fail unless every line of the Delta components ran; report the rest.

Reads the JSON report that pytest-cov leaves behind.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / ".coverage.json"
MIN_SHARE = 1.0
GATED = (
    "src/deltaworks/connectors/",
    "src/deltaworks/engines/",
    "src/deltaworks/storage/",
    "src/deltaworks/sources/delta.py",
    "src/deltaworks/sinks/delta.py",
)


@dataclass(frozen=True)
class FileCoverage:
    """What the report says about one file."""

    path: str
    statements: int
    missing: tuple[int, ...]

    @property
    def gated(self) -> bool:
        """Whether the lines of this file count for the gate."""
        return self.path.startswith(GATED)


def read_report(path: Path) -> list[FileCoverage]:
    """The files of a coverage JSON report, by path."""
    report = json.loads(path.read_text(encoding="utf-8"))
    return [
        FileCoverage(
            path=name.replace("\\", "/"),
            statements=entry["summary"]["num_statements"],
            missing=tuple(entry["missing_lines"]),
        )
        for name, entry in sorted(report["files"].items())
    ]


def ranges(lines: tuple[int, ...]) -> str:
    """Line numbers as `3-5, 9`."""
    spans: list[list[int]] = []
    for line in lines:
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def share(files: list[FileCoverage]) -> float:
    """The share of statements that ran."""
    total = sum(file.statements for file in files)
    return 1 - sum(len(file.missing) for file in files) / total if total else 0.0


def percent(files: list[FileCoverage]) -> str:
    """The share of statements that ran, for people."""
    return f"{100 * share(files):.1f} % of {sum(file.statements for file in files)} lines"


def main() -> int:
    """Exit 1 when too few of the gated lines ran; name those that did not."""
    if not REPORT.exists():
        print(f"coverage: {REPORT.name} is missing; run `make test`", file=sys.stderr)
        return 1
    files = read_report(REPORT)
    gated = [file for file in files if file.gated]
    print(f"coverage: all {percent(files)}; Delta components {percent(gated)}")
    for file in files:
        if file.missing and not file.gated:
            print(f"  {file.path}: {ranges(file.missing)}")
    failed = [file for file in gated if file.missing]
    for file in failed:
        print(f"  NOT COVERED {file.path}: {ranges(file.missing)}", file=sys.stderr)
    if not gated:
        print("coverage: the report holds none of the gated files", file=sys.stderr)
    return 0 if gated and share(gated) >= MIN_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
