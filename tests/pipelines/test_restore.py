"""After a table is set back, the next run does the right thing; cut off anywhere, it still does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.runtime.recovery import restore as restoring
from tests.workbench import Answer, Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTRACT = 'extract: {type: csv, path: "in/*.csv", schema: "id int, v string", incremental: true}\n'
APPEND = "load: {type: delta, table: orders}\n"


def feed(bench: Workbench, n: int) -> None:
    bench.write(f"in/{n}.csv", f"id,v\n{n},day {n}\n")
    bench.run("orders")


def start(bench: Workbench, load: str = APPEND, days: int = 3) -> None:
    bench.pipeline("orders", EXTRACT + load)
    for n in range(1, days + 1):
        feed(bench, n)


def restore(bench: Workbench, *arguments: str) -> Answer:
    return bench.cli("table", "restore", "orders", *arguments)


def ids(bench: Workbench, table: str = "orders") -> list[int]:
    return sorted(row["id"] for row in bench.rows(table))


def test_what_a_restore_takes_back_is_loaded_again(bench: Workbench) -> None:
    start(bench)
    shown = restore(bench, "--version", "0")
    assert "would be set back from 2 to 0" in shown.stdout
    assert "pipeline orders loads again what came with batch 2, 3" in shown.stdout
    assert ids(bench) == [1, 2, 3]
    done = restore(bench, "--version", "0", "--apply", "--json").json
    assert (done["applied"], done["version"]) == (True, 3)
    assert ids(bench) == [1]
    feed(bench, 4)
    assert ids(bench) == [1, 2, 3, 4]
    feed(bench, 5)
    assert ids(bench) == [1, 2, 3, 4, 5]


def test_set_back_to_before_everything_was_loaded_anew(bench: Workbench) -> None:
    start(bench, days=2)
    bench.run("orders", "--full-refresh")
    feed(bench, 3)
    assert restore(bench, "--version", "0", "--apply").code == 0
    assert ids(bench) == [1]
    feed(bench, 4)
    assert ids(bench) == [1, 2, 3, 4]
    bench.run("orders", "--full-refresh")
    feed(bench, 5)
    assert ids(bench) == [1, 2, 3, 4, 5]


class Cut(BaseException):
    """The process dies here."""


@pytest.mark.parametrize("landed", [False, True])
def test_a_restore_that_was_cut_off_is_settled_by_the_next_run(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    start(bench, days=2)
    real = restoring._restore

    def cut(*arguments: Any) -> int:
        if landed:
            real(*arguments)
        raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(restoring, "_restore", cut)
        with pytest.raises(Cut):
            bench.open().restore("orders", version=0, apply=True)
    assert ids(bench) == ([1] if landed else [1, 2])
    feed(bench, 3)
    assert ids(bench) == [1, 2, 3]


def test_another_sink_that_appends_would_get_rows_twice(bench: Workbench) -> None:
    two = "load:\n- {type: delta, table: orders}\n- {type: delta, table: copy}\n"
    start(bench, two, days=2)
    restore(bench, "--version", "0", "--apply")
    bench.write("in/3.csv", "id,v\n3,x\n")
    failed = bench.fail("orders")
    assert (failed.code, 'restore "copy"' in failed.stderr) == (5, True)
    assert bench.cli("table", "restore", "copy", "--version", "0", "--apply").code == 0
    bench.run("orders")
    assert ids(bench) == ids(bench, "copy") == [1, 2, 3]


def test_rows_set_aside_by_lost_batches_are_set_aside_once(bench: Workbench) -> None:
    check = 'checks:\n  - {type: expression, rule: "id <> 2", on_fail: quarantine}\n'
    bench.pipeline("orders", EXTRACT + check + APPEND)
    feed(bench, 1)
    bench.write("in/3.csv", "id,v\n3,x\n")
    feed(bench, 2)
    restore(bench, "--version", "0", "--apply")
    bench.run("orders")
    groups = bench.cli("quarantine", "list", "--json").json["groups"]
    assert [(group["batch"], group["rows"]) for group in groups] == [(3, 1)]
    assert ids(bench) == [1, 3]


def test_spark_sets_back_what_delta_rs_does_not_know(bench: Workbench, spark: SparkSession) -> None:
    start(bench, days=1)
    place = f"delta.`{bench.table('orders')}`"
    spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    feed(bench, 2)
    assert restore(bench, "--version", "1", "--apply").code == 0
    assert spark.sql(f"SELECT count(*) FROM {place}").collect()[0][0] == 1
    feed(bench, 3)
    assert spark.sql(f"SELECT count(*) FROM {place}").collect()[0][0] == 3


def test_a_version_that_is_none_is_refused(bench: Workbench) -> None:
    start(bench, days=2)
    for arguments, words in (
        (("--version", "9"), "versions go from 0 to 1"),
        (("--version", "1"), "at version 1 already"),
        ((), "either --version or --timestamp"),
        (("--timestamp", "soon"), "is not a timestamp"),
        (("--timestamp", "2001-01-01"), "has no version at"),
    ):
        answer = restore(bench, *arguments, "--apply")
        assert answer.code in (1, 2)
        assert words in answer.stderr
    assert bench.version("orders") == 1


def test_a_full_refresh_that_failed_changes_nothing_for_the_next_run(bench: Workbench) -> None:
    start(bench, days=2)
    bench.write("in/bad.csv", "id,v\nx,bad\n")
    bench.fail("orders", "--full-refresh")
    (bench.root / "in/bad.csv").unlink()
    feed(bench, 3)
    assert ids(bench) == [1, 2, 3]
