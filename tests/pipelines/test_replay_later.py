"""Rows that come back from quarantine do not overwrite what later batches wrote, unless told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workbench import Workbench

FILES = 'extract: {type: csv, path: "in/*.csv", schema: "id int, v int, at int", GROWS}\n'
CHECK = 'checks: [{type: expression, rule: "v >= LEAST", on_fail: quarantine}]\n'
UPSERT = "load: {type: delta, table: t, mode: upsert, merge_keys: [id]ORDER}\n"


def write(
    bench: Workbench, *, least: int = 0, order: str = "", grows: bool = True, load: str = UPSERT
) -> None:
    files = FILES.replace("GROWS", "incremental: true" if grows else "on_error: fail")
    into = load.replace("ORDER", order)
    bench.pipeline("p", files + CHECK.replace("LEAST", str(least)) + into)


def rows(bench: Workbench) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in bench.rows("t"))


def groups(bench: Workbench) -> list[tuple[str, int]]:
    found = bench.cli("quarantine", "list", "p", "--json").json["groups"]
    return [(group["rule"], group["rows"]) for group in found]


def replay(bench: Workbench, *options: str) -> Any:
    answer = bench.cli("quarantine", "replay", "p", "--quiet", "--json", *options)
    assert answer.code == 0, answer.stdout + answer.stderr
    return answer.json


def two_batches(bench: Workbench, order: str = "", load: str = UPSERT) -> None:
    """A refused row of id 1 and one of id 3; then a later batch brings another row of id 1."""
    write(bench, order=order, load=load)
    bench.write("in/1.csv", "id,v,at\n1,-5,10\n2,2,10\n3,-3,10\n")
    bench.run("p")
    bench.write("in/2.csv", "id,v,at\n1,7,20\n")
    bench.run("p")
    write(bench, least=-9, order=order, load=load)


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


SCD2 = "load: {type: delta, table: t, mode: scd2, merge_keys: [id], track_columns: [v]ORDER}\n"


def history(bench: Workbench) -> list[tuple[int, int, bool]]:
    found = bench.rows("t")
    return sorted((row["id"], row["v"], row["is_current"]) for row in found)


def test_a_replay_makes_no_newest_version_of_a_row_that_has_a_later_one(bench: Workbench) -> None:
    two_batches(bench, load=SCD2)
    done = replay(bench)
    assert "1 rows stay in quarantine" in done["notes"][0]
    assert history(bench) == [(1, 7, True), (2, 2, True), (3, -3, True)]
    assert groups(bench) == [("written later", 1)]
    replay(bench, "--overwrite")
    assert history(bench) == [(1, -5, True), (1, 7, False), (2, 2, True), (3, -3, True)]


def test_a_replayed_version_finds_its_place_but_replaces_no_later_row_of_it(
    bench: Workbench,
) -> None:
    two_batches(bench, ", sequence_by: at", load=SCD2)
    bench.write("in/3.csv", "id,v,at\n3,8,10\n2,9,30\n")
    bench.run("p")
    replay(bench)
    places = [(1, -5, False), (1, 7, True), (2, 2, False), (2, 9, True), (3, 8, True)]
    assert history(bench) == places
    assert groups(bench) == [("written later", 1)]
    replay(bench, "--set", "at=9", "--set", "v=1")
    assert history(bench)[-2:] == [(3, 1, False), (3, 8, True)]


CHANGES = """
extract: {type: csv, path: "in/*.csv", schema: "id int, v int, op string", incremental: true}
checks: [{type: expression, rule: "v >= LEAST", on_fail: quarantine}]
load: {type: delta, table: t, mode: changelog, merge_keys: [id], op_column: op, sequence_by: v}
"""


def test_a_replayed_change_undoes_no_later_one(bench: Workbench) -> None:
    bench.pipeline("p", CHANGES.replace("LEAST", "0"))
    bench.write("in/1.csv", "id,v,op\n1,1,c\n2,2,c\n3,3,c\n4,4,c\n")
    bench.run("p")
    bench.write("in/2.csv", "id,v,op\n1,-5,u\n2,-5,u\n3,-5,u\n5,-5,c\n")
    bench.run("p")
    bench.write("in/3.csv", "id,v,op\n1,7,u\n2,7,d\n5,7,c\n")
    bench.run("p")
    bench.write("in/4.csv", "id,v,op\n5,8,d\n")
    bench.run("p")
    bench.pipeline("p", CHANGES.replace("LEAST", "-9"))
    done = replay(bench)
    assert "3 rows stay in quarantine" in done["notes"][0]
    assert rows(bench) == [(1, 7), (3, -5), (4, 4)]
    assert groups(bench) == [("written later", 3)]
    replay(bench)
    assert rows(bench) == [(1, 7), (3, -5), (4, 4)]
    replay(bench, "--overwrite")
    assert rows(bench) == [(1, -5), (2, -5), (3, -5), (4, 4), (5, -5)]


def test_a_change_inside_an_envelope_cannot_be_compared(bench: Workbench) -> None:
    text = """
extract: {type: json, path: "in/*.json", incremental: true,
  schema: "op string, before struct<id: int>, after struct<id: int, v: int>, at int"}
checks: [{type: expression, rule: "at > LEAST", on_fail: quarantine}]
load: {type: delta, table: t, mode: changelog, merge_keys: [id], sequence_by: at}
"""
    bench.pipeline("p", text.replace("LEAST", "5"))
    change = '{"op": "c", "at": %s, "after": {"id": %s, "v": 1}}\n'
    bench.write("in/1.json", change % (1, 1) + change % (9, 2))
    bench.run("p")
    bench.pipeline("p", text.replace("LEAST", "0"))
    bench.write("in/2.json", change % (10, 3))
    bench.run("p")
    refused = bench.cli("quarantine", "replay", "p")
    assert refused.code == 5
    assert "their keys are inside change records" in refused.stderr
    assert "--overwrite" in refused.stderr
    replay(bench, "--overwrite")
    assert [row[0] for row in rows(bench)] == [1, 2, 3]
