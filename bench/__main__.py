"""`python -m bench [CASE ...]`: interleaved rounds, medians, raw times, as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from bench.processes import SIDES, run_commands
from bench.worker import find_case

WARM_UP_ROUNDS = 6  # the JVM still compiles hot code in the first ones


@dataclass(frozen=True)
class Worker:
    """A side's process."""

    process: subprocess.Popen[str]

    @staticmethod
    def start(side: str, case: str, folder: Path) -> Worker:
        """Start a side and wait until its JVM is up."""
        command = [sys.executable, "-m", "bench.worker", side, case, str(folder)]
        log = (folder / f"{side}.log").open("w", encoding="utf-8")
        pipe = subprocess.PIPE
        worker = Worker(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True))
        worker.answer()
        return worker

    def answer(self) -> dict[str, Any]:
        """The next line of JSON."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                document: dict[str, Any] = json.loads(line)
                return document
        raise SystemExit("bench: a side ended; see its log")

    def round(self, number: int) -> dict[str, Any]:
        """Let the side do one round."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        return self.answer()

    def stop(self) -> None:
        """End the side."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)


def run_case(name: str, rounds: int) -> dict[str, Any]:
    """All rounds of one case, the sides taking turns."""
    case = find_case(name)
    if hasattr(case, "commands"):
        return run_commands(case, rounds)
    folder = Path(tempfile.mkdtemp(prefix="deltaworks-bench-"))
    try:
        (folder / "project").mkdir()
        (folder / "project" / "deltaworks.yaml").write_text("project: bench\nwarehouse: ./w\n")
        print(f"{name}: preparing", file=sys.stderr)
        case.prepare(folder)
        workers = {side: Worker.start(side, name, folder) for side in SIDES}
        seconds: dict[str, list[float]] = {side: [] for side in SIDES}
        for number in range(WARM_UP_ROUNDS + rounds):
            order = SIDES if number % 2 == 0 else SIDES[::-1]
            answers = {side: workers[side].round(number) for side in order}
            results = {answer["result"] for answer in answers.values()}
            if len(results) != 1:
                raise SystemExit(f"bench: the sides differ: {results}")
            if number >= WARM_UP_ROUNDS:
                for side, answer in answers.items():
                    seconds[side].append(round(answer["seconds"], 3))
            print(f"{name}: round {number}: {answers}", file=sys.stderr)
            for side in SIDES:
                shutil.rmtree(folder / f"{side}_{number}", ignore_errors=True)
        for worker in workers.values():
            worker.stop()
    finally:
        case.finish()
        shutil.rmtree(folder, ignore_errors=True)
    medians = {side: statistics.median(times) for side, times in seconds.items()}
    ratio = medians["ours"] / medians["plain"]
    return {
        "case": name,
        "bar": case.bar,
        "met": ratio <= case.most_ratio,
        "ours_per_plain": round(ratio, 3),
        "median_seconds": medians,
        "seconds": seconds,
    }


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def case_names() -> list[str]:
    """Every case there is."""
    folder = Path(__file__).parent / "cases"
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def main() -> int:
    """Run the cases and print one JSON document."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(case_names()))
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds, at least 5")
    parser.add_argument("--out", type=Path, help="write the JSON there too")
    given = parser.parse_args()
    results = [run_case(name, given.rounds) for name in given.cases or case_names()]
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "results": results,
    }
    text = json.dumps(document, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")
    return 0 if all(result["met"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
