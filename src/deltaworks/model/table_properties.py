"""Table properties, read as Delta reads them: every engine and plug-in asks here.

Delta keeps properties as text. It takes a flag in any case, such as the `True` that Python writes,
and an interval with or without the word itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

FEED = "delta.enableChangeDataFeed"
APPEND_ONLY = "delta.appendOnly"
VECTORS = "delta.enableDeletionVectors"
WIDENING = "delta.enableTypeWidening"
MAPPING = "delta.columnMapping.mode"
AUTO_COMPACT = "delta.autoOptimize.autoCompact"
LOG_CLEANUP = "delta.enableExpiredLogCleanup"
LOG_RETENTION = "delta.logRetentionDuration"
FILE_RETENTION = "delta.deletedFileRetentionDuration"
CHECKPOINTS = "delta.checkpointInterval"
STATISTICS = "delta.dataSkippingNumIndexedCols"

_WHOLE = re.compile(r"[+-]?\d{1,9}")
_UNITS = "week|day|hour|minute|second|millisecond|microsecond"
_PART = re.compile(rf"([+-]?\d+)\s+({_UNITS})s?\b\s*")
_INTERVAL = re.compile(rf"(?:interval\s+)?((?:{_PART.pattern})+)")


def is_on(properties: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Whether a flag is set; what Delta could not read counts as set, so that nobody relies on it.

    Delta asks for `true` or `false` in any case.
    """
    said = properties.get(name)
    return default if said is None else said.lower() != "false"


def whole_number(properties: Mapping[str, str], name: str, *, default: int, least: int) -> int:
    """A whole number; the default where there is none that Delta would take."""
    said = properties.get(name, "")
    if _WHOLE.fullmatch(said) is None or int(said) < least:
        return default
    return int(said)


def interval(properties: Mapping[str, str], name: str, *, default: timedelta) -> timedelta | None:
    """A length of time such as `interval 30 days`; None where it cannot be read."""
    said = properties.get(name)
    if said is None:
        return default
    found = _INTERVAL.fullmatch(said.strip().lower())
    if found is None:
        return None
    try:
        parts = [timedelta(**{f"{unit}s": int(n)}) for n, unit in _PART.findall(found[1])]
    except OverflowError:  # longer than anything that is kept
        return timedelta.max
    return sum(parts, timedelta())


def maps_columns(properties: Mapping[str, str]) -> bool:
    """Whether columns have other names in files than in the schema."""
    return properties.get(MAPPING, "none").lower() != "none"
