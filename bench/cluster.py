"""What a second worker is worth: `python -m bench.cluster` prints JSON.

A master with one worker and one with two, each worker a core of this machine; 5,000,000 orders of
Parquet are read, summed up by customer and written. The clusters take turns, each time with a
driver of its own, whose first run only warms up.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.case import scaled
from bench.orders import make_batch

ROWS = scaled(5_000_000)
TURNS = 3
RUNS_EACH = 2
_PIPELINE = """
extract: {{type: parquet, path: "{folder}"}}
transform:
  - {{type: derive, columns: {{digest: "sha2(concat(note, status), 256)"}}}}
  - type: aggregate
    group_by: [customer_id]
    aggregations:
      - {{column: amount, function: sum, alias: spent}}
      - {{column: digest, function: max, alias: last}}
load: {{type: delta, table: customers, mode: overwrite}}
"""


def measure(project: Path, profile: str) -> list[float]:
    """Seconds of each run of one driver, without the first."""
    from deltaworks.api import Project

    seconds = []
    with Project.open(project, profile=profile) as opened:
        for _ in range(RUNS_EACH + 1):
            start = time.perf_counter()
            result = opened.run("customers", again=True)
            if result.error is not None:
                raise result.error
            seconds.append(round(time.perf_counter() - start, 3))
    return seconds[1:]


def write_project(folder: Path, masters: dict[str, tuple[str, dict[str, str]]]) -> None:
    """The same project with a profile per cluster."""
    profiles = {
        name: {"engine": {"master": url, "conf": conf}} for name, (url, conf) in masters.items()
    }
    (folder / "deltaworks.yaml").write_text(
        f"project: bench\nwarehouse: ./w\nprofiles: {json.dumps(profiles)}\n"
    )
    (folder / "pipelines").mkdir()
    text = _PIPELINE.format(folder=folder / "in")
    (folder / "pipelines" / "customers.yaml").write_text(f"pipeline: customers\n{text}")


def main() -> None:
    """Measure both clusters, or, when asked by name, be one driver."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2])))
        return
    import numpy as np

    from tests.services.spark_cluster import spark_cluster

    seconds: dict[str, list[float]] = {"one": [], "two": []}
    with tempfile.TemporaryDirectory(prefix="deltaworks-bench-") as where:
        folder = Path(where)
        for number, ids in enumerate(np.array_split(np.arange(ROWS), 8)):
            make_batch(folder / "in" / f"{number}.parquet", ids, status="open")
        with (
            spark_cluster(folder / "c1", workers=1) as one,
            spark_cluster(folder / "c2", workers=2) as two,
        ):
            write_project(folder, {"one": (one.url, one.conf), "two": (two.url, two.conf)})
            for turn in range(TURNS):
                for name in ("one", "two") if turn % 2 == 0 else ("two", "one"):
                    seconds[name] += _driver(folder, name)
                    print(f"cluster: turn {turn}: {seconds}", file=sys.stderr)
    print(json.dumps(_summary(seconds), indent=2))


def _driver(folder: Path, profile: str) -> list[float]:
    command = [sys.executable, "-m", "bench.cluster", str(folder), profile]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode != 0:
        raise SystemExit(f"bench: {profile}: {done.stderr[-2000:]}")
    return list(json.loads(done.stdout.splitlines()[-1]))


def _summary(seconds: dict[str, list[float]]) -> dict[str, Any]:
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "case": "cluster",
        "rows": ROWS,
        "cores": os.cpu_count(),
        "speed_up": round(medians["one"] / medians["two"], 2),
        "median_seconds": medians,
        "seconds": seconds,
    }


if __name__ == "__main__":
    main()
