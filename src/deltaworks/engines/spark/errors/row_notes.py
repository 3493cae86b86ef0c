"""Notes that travel inside Spark's errors: which step stopped the run, at which row, and why.

Rows fail long after their step was described, in another process. What has to be said is known
only there, so it is put into the error as one line of JSON, and read again where errors are
translated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from deltaworks.errors import BatchKeyError, CommitConflict, DeltaworksError, InputError, RunError

if TYPE_CHECKING:
    from pyspark.sql import Column

MARK = "deltaworks-note "
_KINDS: dict[str, type[DeltaworksError]] = {
    "keys": BatchKeyError,
    "conflict": CommitConflict,
    "function": RunError,
    "record": InputError,
    "value": InputError,
}


def stop(
    *,
    kind: str,
    step: str,
    message: Column,
    hint: str,
    about: tuple[Column, Column] | None = None,
) -> Column:
    """A column that stops the run wherever it is evaluated; `about` is the value and its type."""
    from pyspark.sql import functions as F

    parts = [
        F.lit(kind).alias("kind"),
        F.lit(step).alias("step"),
        message.alias("message"),
        F.lit(hint).alias("hint"),
    ]
    if about is not None:
        parts += [about[0].alias("value"), about[1].alias("type")]
    note = F.to_json(F.struct(*parts))
    return F.raise_error(F.concat(F.lit(MARK), note))


def noted(texts: Iterable[str]) -> DeltaworksError | None:
    """The error that a note among these texts asks for; None when there is no note."""
    for text in texts:
        _, mark, rest = text.partition(MARK)
        note = _read(rest) if mark else {}
        if note:
            error = _KINDS[note["kind"]](note["message"], hint=note["hint"])
            error.context["raised_by" if note["step"] else note["kind"]] = note["step"]
            error.context.update({key: note[key] for key in ("value", "type") if key in note})
            return error.at(note.get("file", ""), note.get("line", 0))
    return None


def _read(text: str) -> dict[str, Any]:
    """The note a text begins with; empty when a value of the data only looks like one."""
    try:
        note, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return {}
    is_note = isinstance(note, dict) and note.keys() >= {"kind", "step", "message", "hint"}
    return note if is_note and note["kind"] in _KINDS else {}
