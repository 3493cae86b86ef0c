"""What a stream and a run would both read, and what a full refresh could not read again."""

from __future__ import annotations

import pytest

from deltaworks.model.batch import FILES, OFFSETS, VERSION, Bounds, FileStamp
from deltaworks.runtime.recovery.lost_history import _lost
from deltaworks.runtime.streams.shared_position import _again, without_read


def files(*names: str, size: int = 1) -> Bounds:
    stamps = tuple(FileStamp(f"/{name}", size, 1, name=name) for name in names)
    return Bounds(kind=FILES, identity="in", files=stamps)


def offsets(start: int, end: int, topic: str = "orders") -> Bounds:
    return Bounds(kind=OFFSETS, identity=topic, position={"start": {"0": start}, "end": {"0": end}})


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (offsets(0, 10), offsets(10, 20), False),
        (offsets(0, 10), offsets(9, 20), True),
        (offsets(10, 20), offsets(0, 10), False),
        (offsets(5, 6), offsets(0, 10), True),
        (offsets(0, 10, "other"), offsets(0, 10), False),
        (files("a"), files("a", "b"), True),
        (files("a"), files("b"), False),
        (files("a"), offsets(0, 1), False),
    ],
)
def test_what_was_read_before_is_recognised(before: Bounds, now: Bounds, expected: bool) -> None:
    assert _again(before, now, set()) == expected


def test_files_that_the_ledger_knows_are_not_meant() -> None:
    assert not _again(files("a"), files("a"), {"a"})
    left = without_read(files("a", "b").files, [files("a")])
    assert [stamp.name for stamp in left] == ["b"]


@pytest.mark.parametrize(
    ("read", "now", "whole", "expected"),
    [
        (files("a", "b"), files("b"), False, ['file "a" is not read any more']),
        (files("a"), files("a", size=2), True, ['file "a" has changed']),
        (files("a"), files("a", size=2), False, []),
        (offsets(0, 10), offsets(5, 20), False, ["offsets of partition 0 of s from 0 on"]),
        (offsets(5, 10), offsets(5, 20), False, []),
        (offsets(0, 10, "old"), offsets(0, 20), False, ['source "s" was old']),
        (files("a"), None, False, ['source "s" is not in the pipeline any more']),
        (
            Bounds(kind=VERSION, identity="t", position={"version": 1}),
            Bounds(kind=VERSION, identity="t", position={"version": 2}),
            False,
            [],
        ),
    ],
)
def test_what_cannot_be_read_again_is_told(
    read: Bounds, now: Bounds | None, whole: bool, expected: list[str]
) -> None:
    assert list(_lost("s", read, now, whole=whole)) == expected
