"""Run the orders example in `demo/`: two days of CSV through Spark into Delta tables."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from deltaworks import Project
from deltaworks.cli.output import print_run, print_summary
from deltaworks.model.results import SUCCEEDED, RunResult

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "orders"
DEMO = ROOT / "demo"
MARKER = ".deltaworks-demo"
RUNS: tuple[tuple[str, dict[str, str]], ...] = (
    ("orders", {"day": "2026-01-01"}),
    ("orders", {"day": "2026-01-02"}),
    ("revenue", {}),
)
NEXT = (
    ".venv/bin/deltaworks table history orders --project demo",
    ".venv/bin/deltaworks plan orders --var day=2026-01-02 --project demo",
    ".venv/bin/deltaworks runs list --project demo",
)


def start_over() -> None:
    """Make a fresh `demo/`, replacing only a folder that an earlier demo made."""
    if DEMO.is_symlink() or (DEMO.exists() and not (DEMO / MARKER).is_file()):
        sys.exit(
            f"demo: the folder `demo` was not made by `make demo` (it has no {MARKER} file),\n"
            "so it is left alone.\n"
            "  fix: move or rename it, then run  make demo"
        )
    if DEMO.exists():
        print("demo: starting over from a fresh demo/")
        shutil.rmtree(DEMO)
    DEMO.mkdir()
    (DEMO / MARKER).write_text("Made by `make demo`, which may replace this folder.\n")
    ignored = shutil.ignore_patterns("generate.py", "data", "warehouse", "__pycache__")
    shutil.copytree(EXAMPLE, DEMO, dirs_exist_ok=True, ignore=ignored)


def generate() -> None:
    """Write the two days of orders."""
    print("demo: generating two days of orders in demo/data", flush=True)
    subprocess.run([sys.executable, EXAMPLE / "generate.py", DEMO / "data"], check=True)


def run_all() -> list[RunResult]:
    """Run the pipelines in one process, so that Spark starts once; stop at the first failure."""
    print("demo: starting Spark (the first run takes a moment)", flush=True)
    project = Project.open(DEMO)
    results: list[RunResult] = []
    for pipeline, variables in RUNS:
        result = project.run(pipeline, variables=variables)
        print_run(result)
        sys.stdout.flush()
        results.append(result)
        if result.status != SUCCEEDED:
            break
    return results


def print_ending(results: list[RunResult]) -> None:
    """One line per run, then what to try next."""
    print(flush=True)
    print_summary(results)
    print("\nTry next:")
    for command in NEXT:
        print(f"  {command}")


def main() -> int:
    """Exit 0 when every pipeline succeeded."""
    start_over()
    generate()
    results = run_all()
    if results[-1].status != SUCCEEDED:
        return 1
    print_ending(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
