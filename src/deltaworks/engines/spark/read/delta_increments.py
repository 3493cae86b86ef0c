"""Rows added to a Delta table between two versions, from the files that brought them.

Compaction adds files too, but no rows; its files say so and are left out. A commit that also took
rows away is not an addition: the pipeline must say what such a commit means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from deltaworks.engines.spark.session.connect import require_jvm
from deltaworks.errors import GuardError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OnChange = Literal["refuse", "reread", "leave_out"]


@dataclass(frozen=True, kw_only=True)
class ChangePolicy:
    """What commits that took rows away mean to a reader of additions."""

    on_change: OnChange = "refuse"
    ignore_deletes: bool = False


@dataclass(frozen=True)
class _Commit:
    version: int
    added: tuple[Any, ...]
    removed: int


def added_rows(
    spark: SparkSession, location: str, *, since: int, until: int, policy: ChangePolicy
) -> DataFrame:
    """The rows added after one version, up to and with another, in the latter's schema."""
    from pyspark.sql import DataFrame

    require_jvm(
        spark,
        "reading only what was added to a Delta table",
        instead="read its change feed (`type: delta_changes`), or choose a profile with a driver",
    )
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, location)
    nothing = jvm.scala.Option.empty()
    files = jvm.java.util.ArrayList()
    for commit in _commits(log.getChanges(since + 1, until, nothing, True)):  # noqa: FBT003
        for file in _additions(commit, policy, location):
            files.add(file)
    chosen = jvm.scala.jdk.javaapi.CollectionConverters.asScala(files).toSeq()
    snapshot = log.getSnapshotAt(until, nothing, nothing, False)  # noqa: FBT003
    return DataFrame(log.createDataFrame(snapshot, chosen, False, nothing), spark)  # noqa: FBT003


def _commits(changes: Any) -> Iterator[_Commit]:
    while changes.hasNext():
        pair = changes.next()
        actions = pair._2()
        added, removed = [], 0
        for i in range(actions.size()):
            action = actions.apply(i)
            kind = action.getClass().getSimpleName()
            if kind == "AddFile" and action.dataChange():
                added.append(action)
            elif kind == "RemoveFile" and action.dataChange():
                removed += 1
        yield _Commit(int(pair._1()), tuple(added), removed)


def _additions(commit: _Commit, policy: ChangePolicy, location: str) -> tuple[Any, ...]:
    if not commit.removed or policy.on_change == "reread":
        return commit.added
    if policy.on_change == "leave_out":
        return ()
    if policy.ignore_deletes and not commit.added:
        return ()
    raise GuardError(
        f'version {commit.version} of "{location}" changed or deleted rows that were read before',
        hint="say `skip_change_commits`, `ignore_changes` or `ignore_deletes`, "
        "or reload everything with --full-refresh",
    )
