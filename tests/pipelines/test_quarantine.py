"""Quarantined rows: counted, shown, brought back exactly once, or discarded."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable

from deltaworks.engines.spark.delta.merge import small_batches as hybrid
from deltaworks.runtime.quarantine import table as quarantine
from tests.workbench import Workbench

CSV = 'extract: {type: csv, path: orders.csv, schema: "id int, amount string, at timestamp",'
CSV += " on_error: quarantine}\n"
CAST = (
    "transform:\n  - {name: typed, type: cast, columns: {amount: double}, on_error: quarantine}\n"
)
CHECK = 'checks:\n  - {type: expression, rule: "amount >= LEAST", on_fail: quarantine}\n'
APPEND = "load: {type: delta, table: orders}\n"
UPSERT = "load: {type: delta, table: orders, mode: upsert, merge_keys: [id]}\n"
ROWS = """id,amount,at
1,10,2026-01-01 00:00:00.123456
2,-5,2026-01-02 00:00:00.654321
three,7,2026-01-03 00:00:00
4,many,2026-01-04 00:00:00.000001
"""


def write(bench: Workbench, *, least: str = "0", load: str = APPEND, steps: str = CAST) -> None:
    bench.pipeline("orders", CSV + steps + CHECK.replace("LEAST", least) + load)


def start(bench: Workbench, load: str = APPEND) -> None:
    bench.write("orders.csv", ROWS)
    write(bench, load=load)
    done = bench.run("orders")
    assert done["batches"][0]["rows_quarantined"] == 3


def replay(bench: Workbench, *arguments: str) -> Any:
    answer = bench.cli("quarantine", "replay", "orders", "--json", "--quiet", *arguments)
    assert answer.code == 0, answer.stdout + answer.stderr
    return answer.json


def groups(bench: Workbench) -> list[tuple[Any, ...]]:
    found = bench.cli("quarantine", "list", "--json").json["groups"]
    return [(group["batch"], group["step"], group["kind"], group["rows"]) for group in found]


def loaded(bench: Workbench) -> list[tuple[Any, ...]]:
    rows = bench.rows("orders")
    return sorted((row["id"], row["amount"], row["at"].isoformat()) for row in rows)


FIRST = (1, 10.0, "2026-01-01T00:00:00.123456+00:00")
SECOND = (2, -5.0, "2026-01-02T00:00:00.654321+00:00")


def test_rows_are_counted_and_shown_with_their_rule(bench: Workbench) -> None:
    assert bench.cli("quarantine", "list").stdout == "nothing is in quarantine\n"
    start(bench)
    assert groups(bench) == [
        (1, "source", "extract", 1),
        (1, "typed", "check", 1),
        (1, "typed", "transform", 1),
    ]
    shown = bench.cli("quarantine", "show", "orders", "--step", "source", "--json").json["rows"]
    assert [row["raw"] for row in shown] == ["three,7,2026-01-03 00:00:00"]
    text = bench.cli("quarantine", "show", "orders", "--rule", "amount >= 0").stdout
    assert "2026-01-02 00:00:00.654321" in text
    assert bench.cli("quarantine", "show", "orders", "--batch", "7").stdout == (
        "no such row is in quarantine\n"
    )


def test_a_row_comes_back_once_after_its_rule_was_corrected(bench: Workbench) -> None:
    start(bench, UPSERT)
    write(bench, least="-10", load=UPSERT)
    done = replay(bench)
    batch = done["batches"][0]
    assert (batch["n"], batch["rows_read"], batch["rows_quarantined"]) == (2, 3, 2)
    assert loaded(bench) == [FIRST, SECOND]
    assert groups(bench) == [(2, "source", "extract", 1), (2, "typed", "transform", 1)]
    before = bench.version("orders")
    replay(bench)
    assert (loaded(bench), bench.version("orders")) == ([FIRST, SECOND], before)


def test_a_value_is_corrected_on_the_way_back(bench: Workbench) -> None:
    start(bench)
    for step, change, words in (
        ("typed", "amont=1", "amont"),
        ("typed", "amount=(1", "amount=(1"),
        ("source", "amount=1", "no columns yet"),
    ):
        arguments = ("replay", "orders", "--quiet", "--step", step, "--set", change)
        wrong = bench.cli("quarantine", *arguments)
        assert wrong.code in (2, 5)
        assert words in wrong.stdout + wrong.stderr
    done = replay(bench, "--step", "typed", "--set", "amount=0.5")
    assert done["batches"][0]["rows_read"] == 2
    assert [row[:2] for row in loaded(bench)] == [(1, 10.0), (2, 0.5), (4, 0.5)]
    assert groups(bench) == [(1, "source", "extract", 1)]


def test_text_that_could_not_be_read_is_read_again_as_the_file_says_now(bench: Workbench) -> None:
    start(bench)
    arguments = ("quarantine", "replay", "orders", "--step", "source", "--quiet")
    assert "1 quarantined" in bench.cli(*arguments).stdout  # nothing has been corrected
    assert groups(bench)[-1] == (2, "source", "extract", 1)
    words = """  - {type: derive, columns: {id: "int(if(id = 'three', '3', id))"}}\n"""
    source = CSV.replace("id int", "id string")
    bench.pipeline("orders", source + CAST + words + CHECK.replace("LEAST", "0") + APPEND)
    assert "1 inserted" in bench.cli(*arguments).stdout
    assert loaded(bench)[-1] == (3, 7.0, "2026-01-03T00:00:00+00:00")


def test_discarded_rows_are_gone_only_when_asked(bench: Workbench) -> None:
    start(bench)
    arguments = ("quarantine", "discard", "orders", "--rule", "amount >= 0", "--reason", "old")
    shown = bench.cli(*arguments)
    assert "1 rows would be removed" in shown.stdout
    assert len(groups(bench)) == 3
    assert bench.cli(*arguments, "--apply", "--json").json["rows"] == 1
    assert [group[1:3] for group in groups(bench)] == [
        ("source", "extract"),
        ("typed", "transform"),
    ]
    note = bench.cli("table", "history", "orders__quarantine", "--json").json["commits"][0]
    assert note["operation"] == "DELETE"


def test_a_join_is_looked_up_again_and_other_rows_stay_away(bench: Workbench) -> None:
    bench.write("orders.csv", "id,amount\n1,5\n2,-5\n")
    bench.write("names.csv", "id,name\n1,one\n2,two\n")
    text = """extract:
  orders: {type: csv, path: orders.csv, schema: "id int, amount int"}
  names: {type: csv, path: names.csv, schema: "id int, name string"}
transform:
  - {name: positive, type: filter, input: orders, condition: "true"}
  - {name: named, type: join, with: names, on: [id]}
checks:
  - {type: expression, rule: "amount > LEAST", on_fail: quarantine, input: positive}
load: {type: delta, table: orders}
"""
    bench.pipeline("orders", text.replace("LEAST", "0"))
    bench.run("orders")
    bench.pipeline("orders", text.replace("LEAST", "-9"))
    replay(bench)
    assert [(row["id"], row["name"]) for row in bench.rows("orders")] == [(1, "one"), (2, "two")]
    assert groups(bench) == []


@pytest.mark.parametrize(
    ("step", "load", "words"),
    [
        (
            "{type: aggregate, group_by: [id], aggregations: [{column: amount, function: sum}]}",
            APPEND,
            "all rows together",
        ),
        (
            "{type: filter, condition: 'true'}",
            "load: {type: delta, table: orders, mode: overwrite}\n",
            "replaces what it holds",
        ),
    ],
)
def test_rows_do_not_come_back_where_they_would_spoil_the_rest(
    bench: Workbench, step: str, load: str, words: str
) -> None:
    bench.write("orders.csv", ROWS)
    bench.pipeline("orders", f"{CSV}{CAST}  - {step}\n{load}")
    bench.run("orders")
    before = (bench.version("orders"), groups(bench))
    answer = bench.cli("quarantine", "replay", "orders", "--quiet")
    assert answer.code == 5
    assert words in answer.stdout + answer.stderr
    assert (bench.version("orders"), groups(bench)) == before


def test_a_step_that_is_gone_takes_no_rows_back(bench: Workbench) -> None:
    start(bench)
    write(bench, steps=CAST.replace("typed", "retyped"))
    answer = bench.cli("quarantine", "replay", "orders", "--step", "typed", "--quiet")
    assert answer.code == 5
    assert '"typed", which the pipeline no longer has' in answer.stdout + answer.stderr


def test_loading_everything_anew_forgets_what_was_set_aside_before(bench: Workbench) -> None:
    start(bench)
    bench.write("orders.csv", ROWS.replace("three", "3"))
    bench.run("orders", "--full-refresh", "--drop-history")
    assert groups(bench) == [(2, "typed", "check", 1), (2, "typed", "transform", 1)]


def by_delta_rs(bench: Workbench) -> list[bool]:
    """Of each commit of quarantined rows, whether delta-rs made it."""
    history = DeltaTable(str(bench.table("orders__quarantine"))).history()
    return [commit["engineInfo"].startswith("delta-rs") for commit in reversed(history)]


def test_rows_set_aside_are_sparks_on_a_disk_that_is_nearly_full(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hybrid, "has_room", lambda *_: False)
    start(bench)
    assert by_delta_rs(bench) == [False]
    assert sum(rows for *_, rows in groups(bench)) == 3


def test_rows_set_aside_are_the_same_whoever_commits_them(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept() -> list[dict[str, Any]]:
        apart = ("run_id", "batch", "quarantined_at")
        rows = [
            {name: value for name, value in row.items() if name not in apart}
            for row in bench.rows("orders__quarantine")
            if row["batch"] == len(by_delta_rs(bench))
        ]
        return sorted(rows, key=lambda row: str(row["row"]))

    start(bench)
    first = kept()
    monkeypatch.setattr(quarantine, "_FEW_ROWS", 0)
    monkeypatch.setattr(hybrid, "MAX_BATCH_BYTES", 0)
    bench.write("orders.csv", ROWS + "5,1,2026-01-05 00:00:00\n")
    bench.run("orders")
    assert by_delta_rs(bench) == [True, False]
    assert kept() == first
    monkeypatch.undo()
    bench.write("orders.csv", ROWS + "6,1,2026-01-06 00:00:00\n")
    bench.run("orders")
    assert by_delta_rs(bench) == [True, False, True]
    assert kept() == first


def test_rows_that_a_step_refused_are_no_business_of_its_checks(bench: Workbench) -> None:
    bench.write("orders.csv", "id,amount\n1,1\n1,many\n2,-1\n3,many\n")
    cast = CAST.replace("double", "int")
    checks = (
        "checks:\n"
        "  - {type: expression, rule: 'amount > 0', on_fail: quarantine, max_failed: 60%}\n"
        "  - {type: not_null, columns: [amount]}\n"
    )
    alone = "  - {type: unique, columns: [id]}\n"
    for more in ("", alone):
        bench.pipeline(
            "orders",
            "extract: {type: csv, path: orders.csv}\n"
            f"{cast}{checks}{more}"
            "load: {type: delta, table: orders, mode: overwrite}\n",
        )
        batch = bench.run("orders")["batches"][0]
        found = [(check["rows_checked"], check["rows_failed"]) for check in batch["checks"]]
        assert found[:2] == [(2, 1), (2, 0)]
        assert found[2:] == [(2, 0)] * bool(more)
        assert (batch["rows_read"], batch["rows_quarantined"]) == (4, 3)
        steps = {step["name"]: step["rows"] for step in batch["steps"]}
        assert steps["typed"] == 2
