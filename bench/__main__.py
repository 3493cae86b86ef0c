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

from bench.case import SCALE
from bench.processes import SIDES, run_commands
from bench.worker import find_case


@dataclass(frozen=True)
class Worker:
    """A side's process."""

    process: subprocess.Popen[str]
    log: Path

    @staticmethod
    def start(side: str, case: str, folder: Path) -> Worker:
        """Start a side and wait until its JVM is up."""
        command = [sys.executable, "-m", "bench.worker", side, case, str(folder)]
        log, pipe = folder / f"{side}.log", subprocess.PIPE
        with log.open("w", encoding="utf-8") as said:
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said, text=True)
        worker = Worker(process, log)
        worker.answer()
        return worker

    def answer(self) -> dict[str, Any]:
        """The next line of JSON."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                document: dict[str, Any] = json.loads(line)
                return document
        raise SystemExit(f"bench: a side ended:\n{self.log.read_text(encoding='utf-8')[-2000:]}")

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


def run_case(name: str, rounds: int, *, warm_up: int | None) -> dict[str, Any]:
    """All rounds of one case, the sides taking turns."""
    case = find_case(name)
    if hasattr(case, "commands"):
        return run_commands(case, rounds)
    before = case.warm_up if warm_up is None else warm_up
    folder = Path(tempfile.mkdtemp(prefix="deltaworks-bench-"))
    try:
        (folder / "project").mkdir()
        (folder / "project" / "deltaworks.yaml").write_text("project: bench\nwarehouse: ./w\n")
        print(f"{name}: preparing", file=sys.stderr)
        case.prepare(folder)
        answers = _take_turns(name, folder, before + rounds)[before:]
    finally:
        case.finish()
        shutil.rmtree(folder, ignore_errors=True)
    seconds = {
        side: {
            part: [round(answer[side]["seconds"][part], 3) for answer in answers]
            for part in answers[0][side]["seconds"]
        }
        for side in SIDES
    }
    medians = {
        side: {part: statistics.median(times) for part, times in parts.items()}
        for side, parts in seconds.items()
    }
    ratio = case.ratio(medians)
    return {
        "case": name,
        "bar": case.bar,
        "met": ratio <= case.most_ratio,
        "ratio": round(ratio, 3),
        "most_ratio": round(case.most_ratio, 3),
        "median_seconds": medians,
        "seconds": seconds,
        "jobs": {side: answers[-1][side]["jobs"] for side in SIDES},
    }


def _take_turns(name: str, folder: Path, rounds: int) -> list[dict[str, Any]]:
    """The answers of both sides, round by round; they must have done the same."""
    workers = {side: Worker.start(side, name, folder) for side in SIDES}
    found = []
    for number in range(rounds):
        order = SIDES if number % 2 == 0 else SIDES[::-1]
        answers = {side: workers[side].round(number) for side in order}
        results = {answer["result"] for answer in answers.values()}
        if len(results) != 1:
            raise SystemExit(f"bench: the sides differ: {results}")
        found.append(answers)
        print(f"{name}: round {number}: {answers}", file=sys.stderr)
        for side in SIDES:
            for made in folder.glob(f"{side}_{number}*"):
                shutil.rmtree(made, ignore_errors=True)
    for worker in workers.values():
        worker.stop()
    return found


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
    parser.add_argument("--warm-up", type=int, help="rounds before them; each case knows how many")
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the rows, to try it")
    given = parser.parse_args()
    os.environ[SCALE] = str(given.scale)
    results: list[dict[str, Any]] = []
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "scale": given.scale,
        "results": results,
    }
    for name in given.cases or case_names():
        results.append(run_case(name, given.rounds, warm_up=given.warm_up))
        if given.out is not None:  # after each case: a run takes hours, and may be cut off
            given.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(document, indent=2))
    return 0 if all(result["met"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
