"""The rows of a batch that win their keys, found with as little sorting as there is reason for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from deltaworks.engines.spark.delta.merge import keys as batch_keys
from deltaworks.engines.spark.frames.sizing import SMALL_BYTES, estimated_bytes, fitted
from deltaworks.model.changes import COMMIT_VERSION, FEED_TIE_HINT
from deltaworks.model.merge_facts import BatchFacts
from deltaworks.model.write import DuplicatePolicy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEW_KEYS = 100_000
"""So many repeated keys are sent to wherever the rows are."""


@contextmanager
def winners(
    frame: DataFrame, keys: Sequence[str], rule: DuplicatePolicy, *, folders: Collection[str]
) -> Iterator[tuple[DataFrame, BatchFacts]]:
    """One row per key, kept while it is used, and what is known of them all.

    Most batches repeat few keys or none. A large one is asked first, which reads its keys and
    nothing else; a small one is sorted sooner than it is asked.
    """
    if estimated_bytes(frame) <= SMALL_BYTES:
        with _of_all(frame, keys, rule, folders=folders) as found:
            yield found
        return
    facts = batch_keys.counted_keys(frame, keys, folders=folders)
    if not facts.keys_repeated:
        yield frame, facts
    elif facts.keys_repeated > _FEW_KEYS:
        with _of_all(frame, keys, rule, folders=folders) as found:
            yield found
    else:
        with _of_repeated(frame, keys, rule) as rows:
            yield rows, replace(facts, keys_repeated=0)


@contextmanager
def _of_all(
    frame: DataFrame, keys: Sequence[str], rule: DuplicatePolicy, *, folders: Collection[str]
) -> Iterator[tuple[DataFrame, BatchFacts]]:
    """Every row is sorted by its key, and figures are taken of those that win."""
    with fitted(frame.sparkSession, estimated_bytes(frame)):
        ranked = batch_keys.keep_one(frame, keys, keep=rule.keep, by=rule.by).persist()
    try:
        facts = batch_keys.measured_winners(ranked, keys, folders=folders)
        if facts.rows_null_key:
            batch_keys.refuse_null_keys(frame, keys, folders=folders)
        _refuse_ties(ranked, keys, rule, ties=facts.keys_repeated)
        yield batch_keys.without_marks(ranked), facts
    finally:
        ranked.unpersist()


@contextmanager
def _of_repeated(
    frame: DataFrame, keys: Sequence[str], rule: DuplicatePolicy
) -> Iterator[DataFrame]:
    """Only the rows whose keys are repeated are sorted; the others stay where they are."""
    repeated = batch_keys.repeated_keys(frame, keys).persist()
    once, twice = batch_keys.parted(frame, repeated, keys)
    ranked = batch_keys.keep_one(twice, keys, keep=rule.keep, by=rule.by).persist()
    try:
        ties = batch_keys.count_ties(ranked)
        _refuse_ties(ranked, keys, rule, ties=ties)
        yield once.unionByName(batch_keys.without_marks(ranked))
    finally:
        ranked.unpersist()
        repeated.unpersist()


def _refuse_ties(
    ranked: DataFrame, keys: Sequence[str], rule: DuplicatePolicy, *, ties: int
) -> None:
    hint = FEED_TIE_HINT if rule.by.lower() == COMMIT_VERSION else rule.tie_hint
    batch_keys.refuse_ties(ranked, keys, rule.shown or rule.by, ties=ties, hint=hint)
