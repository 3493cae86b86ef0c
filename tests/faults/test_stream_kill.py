"""A stream killed with SIGKILL and started again three epochs back (S3); the whole is in prove."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.streaming import held, left_over, model, stream


@pytest.mark.parametrize(
    ("mode", "point"),
    [
        ("append", "committed"),
        ("append", "flushed"),
        ("append", "linked"),
        ("overwrite_partitions", "committed"),
        ("upsert", "durable"),
        ("changelog", "committing"),
    ],
)
def test_a_killed_stream_ends_where_an_undisturbed_one_would(
    tmp_path: Path, mode: str, point: str
) -> None:
    assert stream(tmp_path, mode, point, 5, 8) < 0
    assert held(tmp_path) in (model(mode, 4), model(mode, 5))
    assert stream(tmp_path, mode, "", 0, 8) == 0
    assert held(tmp_path) == model(mode, 8)
    assert not left_over(tmp_path)


@pytest.mark.parametrize("mode", ["append", "changelog"])
def test_so_does_one_that_is_killed_at_a_moment_nobody_chose(tmp_path: Path, mode: str) -> None:
    assert stream(tmp_path, mode, "anywhere", 5 + random.random(), 40) < 0  # noqa: S311
    assert held(tmp_path) in [model(mode, epoch) for epoch in range(4, 40)]
    assert stream(tmp_path, mode, "", 0, 40) == 0
    assert held(tmp_path) == model(mode, 40)
    assert not left_over(tmp_path)
