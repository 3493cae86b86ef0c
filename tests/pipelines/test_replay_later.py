"""Rows that come back from quarantine do not overwrite what later batches wrote, unless told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workbench import Workbench

FILES = 'extract: {type: csv, path: "in/*.csv", schema: "id int, v int, at int", GROWS}\n'
CHECK = 'checks: [{type: expression, rule: "v >= LEAST", on_fail: quarantine}]\n'
UPSERT = "load: {type: delta, table: t, mode: upsert, merge_keys: [id]ORDER}\n"


def write(bench: Workbench, *, least: int = 0, order: str = "", grows: bool = True) -> None:
    files = FILES.replace("GROWS", "incremental: true" if grows else "on_error: fail")
    load = UPSERT.replace("ORDER", order)
    bench.pipeline("p", files + CHECK.replace("LEAST", str(least)) + load)


def rows(bench: Workbench) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in bench.rows("t"))


def groups(bench: Workbench) -> list[tuple[str, int]]:
    found = bench.cli("quarantine", "list", "p", "--json").json["groups"]
    return [(group["rule"], group["rows"]) for group in found]


def replay(bench: Workbench, *options: str) -> Any:
    answer = bench.cli("quarantine", "replay", "p", "--quiet", "--json", *options)
    assert answer.code == 0, answer.stdout + answer.stderr
    return answer.json


def two_batches(bench: Workbench, order: str = "") -> None:
    """A refused row of id 1 and one of id 3; then a later batch brings another row of id 1."""
    write(bench, order=order)
    bench.write("in/1.csv", "id,v,at\n1,-5,10\n2,2,10\n3,-3,10\n")
    bench.run("p")
    bench.write("in/2.csv", "id,v,at\n1,7,20\n")
    bench.run("p")
    write(bench, least=-9, order=order)


def test_a_replay_leaves_rows_alone_that_later_batches_wrote(bench: Workbench) -> None:
    two_batches(bench)
    planned = replay(bench, "--plan")
    assert "1 rows stay in quarantine" in planned["notes"][0]
    assert rows(bench) == [(1, 7), (2, 2)]
    done = replay(bench)
    assert "--overwrite" in done["notes"][0]
    assert rows(bench) == [(1, 7), (2, 2), (3, -3)]
    assert groups(bench) == [("written later", 1)]
    replay(bench, "--overwrite")
    assert rows(bench) == [(1, -5), (2, 2), (3, -3)]
    assert groups(bench) == []


@pytest.mark.parametrize(("at", "expected"), [(10, 7), (30, -5)])
def test_the_newest_row_wins_where_a_column_says_which_is_newer(
    bench: Workbench, at: int, expected: int
) -> None:
    order = ", duplicates: {keep: newest, by: at}"
    two_batches(bench, order)
    replay(bench, "--set", f"at={at}")
    assert rows(bench)[0] == (1, expected)
    assert groups(bench) == ([("written later", 1)] if at == 10 else [])


def test_a_row_that_a_snapshot_brings_again_is_in_quarantine_once(bench: Workbench) -> None:
    write(bench, grows=False)
    bench.write("in/1.csv", "id,v,at\n1,-5,10\n2,2,10\n")
    bench.run("p")
    bench.write("in/1.csv", "id,v,at\n1,-5,10\n2,3,11\n4,-4,11\n")
    done = bench.run("p")
    assert done["batches"][0]["rows_quarantined"] == 2
    assert sum(count for _, count in groups(bench)) == 2
    assert rows(bench) == [(2, 3)]
