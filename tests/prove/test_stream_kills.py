"""Kill -9 of a stream, at named points and at random, in every mode (S3, S4, S5).

Each cell streams on through several kills, beginning three epochs back after each, and ends with a
run that is let be. After every kill the table must hold a whole number of epochs, and in the end
all of them, each once, with no file left over. One line of JSON per landed kill goes to
docs/proofs/stream-kills.jsonl; cells that are there often enough are passed over.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.faults.streaming import MODES, POINTS, held, model, stream

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "docs" / "proofs" / "stream-kills.jsonl"
TIMES = int(os.environ.get("DELTAWORKS_KILLS", "9"))
KILLS = 3
EPOCHS = 24

pytestmark = [pytest.mark.prove, pytest.mark.timeout(0)]


def cells() -> Iterator[tuple[str, str, int]]:
    lines = LOG.read_text(encoding="utf-8").splitlines() if LOG.exists() else []
    done = Counter((cell["mode"], cell["point"]) for cell in map(json.loads, lines))
    for mode in MODES:
        for point in POINTS:
            for n in range(done[mode, point], TIMES, KILLS):
                yield mode, point, n


@pytest.mark.parametrize(("mode", "point", "n"), list(cells()))
def test_a_killed_stream_ends_where_an_undisturbed_one_would(
    tmp_path: Path, mode: str, point: str, n: int
) -> None:
    chance = random.Random(f"{mode}/{point}/{n}")  # noqa: S311 - repeatable on purpose
    landed = []
    for kill in range(KILLS):
        epoch = chance.randrange(4 + 6 * kill, 9 + 6 * kill)
        if stream(tmp_path, mode, point, epoch, EPOCHS) == 0:
            continue  # it was over before the blow fell
        stands = [k for k in range(EPOCHS + 1) if held(tmp_path) == model(mode, k)]
        assert stands, f"after the kill at epoch {epoch} the table holds no whole number of epochs"
        landed.append({"epoch": epoch, "stands": stands[0]})
    assert stream(tmp_path, mode, "", 0, EPOCHS) == 0
    assert held(tmp_path) == model(mode, EPOCHS)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    with LOG.open("a", encoding="utf-8") as log:
        for one in landed:
            log.write(json.dumps({"at": at, "mode": mode, "point": point, "n": n, **one}) + "\n")
