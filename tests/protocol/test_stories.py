"""Stories that the world in memory and a real project live through alike (B3, M1)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.protocol.sidebyside import SideBySide, tell

STORIES = int(os.environ.get("DELTAWORKS_STORIES", "2"))
FIRST = int(os.environ.get("DELTAWORKS_FIRST_STORY", "0"))
STEPS = int(os.environ.get("DELTAWORKS_STORY_STEPS", "6"))
MODES = (
    (("a", "append"), ("b", "append")),
    (("a", "append"),),
    (("a", "upsert"), ("b", "upsert")),
    (("a", "append"), ("b", "upsert")),
)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + STORIES))
def test_the_real_project_does_what_the_world_in_memory_does(
    jvm: object,  # noqa: ARG001 - it must be up
    tmp_path: Path,
    seed: int,
) -> None:
    story = SideBySide(tmp_path, MODES[seed % len(MODES)])
    tell(story, seed, STEPS)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("death", [("events", 0), ("tables", 1), ("events", 1)])
def test_a_death_leaves_the_same_in_both(
    jvm: object,  # noqa: ARG001 - it must be up
    tmp_path: Path,
    death: tuple[str, int],
) -> None:
    story = SideBySide(tmp_path, MODES[0])
    story.step("run", dies_at=death)
    story.step("deliver")
    story.step("fail")
    story.step("run")
    story.step("run")
