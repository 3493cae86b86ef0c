"""Ranges of offsets: where a batch begins in each partition, and where it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaworks.connectors.kafka.topics import Offsets, TopicInfo
from deltaworks.errors import GuardError, InputError
from deltaworks.model.batch import OFFSETS, Bounds

_CHOICES = "go on with what is left by --from earliest, or reload everything with --full-refresh"


def identity_of(topic: str, info: TopicInfo) -> str:
    """Another one as soon as the topic is recreated, or is one of another cluster."""
    return f"{topic} {info.topic_id} {info.cluster}"  # ids may hold any sign but a blank


def same_name(identity: str, topic: str) -> bool:
    """Whether a recorded identity is of a topic with this name."""
    return identity.partition(" ")[0] == topic


def offset_bounds(
    identity: str, start: Offsets, end: Offsets, *, first: Offsets, most: int | None
) -> Bounds:
    """Bounds from offsets up to others, or up to so many messages of all partitions together."""
    reached = end if most is None else _shares(start, end, most)
    position: dict[str, Any] = {
        "start": _texts(start),
        "end": _texts(reached),
        "first": _texts({**start, **first}),
    }
    if waiting := _length(reached, end):
        position["waiting"] = waiting
    return Bounds(kind=OFFSETS, identity=identity, position=position)


def offsets_in(bounds: Bounds, name: str) -> dict[int, int]:
    """The offsets that bounds have at one end."""
    return {int(part): int(offset) for part, offset in bounds.position[name].items()}


def refuse_lost(topic: str, start: Offsets, earliest: Offsets, latest: Offsets) -> None:
    """What was not read yet must still be there, and what was read must not be ahead of it."""
    for part, offset in start.items():
        if part not in earliest:
            raise GuardError(f'topic "{topic}" has lost partition {part}', hint=_CHOICES)
        if offset < earliest[part]:
            raise GuardError(
                f'topic "{topic}": partition {part} begins at offset {earliest[part]:,}, and the '
                f"next one to read is {offset:,}: {earliest[part] - offset:,} have expired",
                hint=_CHOICES,
            )
        if offset > latest[part]:
            raise GuardError(
                f'topic "{topic}": partition {part} ends at offset {latest[part]:,}, though all '
                f"before {offset:,} was read",
                hint=f"it was set back; {_CHOICES}",
            )


def within(topic: str, wanted: Offsets, earliest: Offsets, latest: Offsets) -> dict[int, int]:
    """Offsets that a file names for all partitions; one that is not there is refused."""
    for part in earliest:
        if part not in wanted:
            raise InputError(
                f'topic "{topic}" has a partition {part}, for which no offset is named',
                hint=f"name one for each of {len(earliest)} partitions",
            )
    for part, offset in wanted.items():
        if part not in earliest:
            raise InputError(
                f'topic "{topic}" has no partition {part}',
                hint=f"its partitions are {', '.join(map(str, earliest))}",
            )
        if not earliest[part] <= offset <= latest[part]:
            raise InputError(
                f'topic "{topic}": partition {part} has no offset {offset:,}',
                hint=f"it goes from {earliest[part]:,} to {latest[part]:,}",
            )
    return dict(wanted)


def _shares(start: Offsets, end: Offsets, most: int) -> dict[int, int]:
    """Ends that are reached with so many messages, each partition by its share of them."""
    total = _length(start, end)
    if total <= most:
        return dict(end)
    reached, left = {}, most
    for part in sorted(start):
        share = min((end[part] - start[part]) * most // total, left)
        reached[part] = start[part] + share
        left -= share
    for part in sorted(start):  # what rounding has left over
        more = min(end[part] - reached[part], left)
        reached[part] += more
        left -= more
    return reached


def _length(start: Offsets, end: Offsets) -> int:
    return sum(end[part] - offset for part, offset in start.items())


def _texts(offsets: Offsets) -> Mapping[str, int]:
    """As JSON keeps them."""
    return {str(part): offsets[part] for part in sorted(offsets)}
