"""Checks: exact counts, NULL, tolerance, other tables, time, and what is remembered of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.api import Project
from deltaworks.config.project import load_project
from deltaworks.contracts.check import RowCheck
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.registry import find_plugin
from deltaworks.errors import SpecError
from deltaworks.model.events import Committed, Event
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = """id,name,amount,day
1,ann,0,2026-01-01
2,bob,10,2026-01-31
3,,5,2026-02-01
4,bobby,NaN,
6,Ann,,2026-01-15
"""
SCHEMA = "id bigint, name string, amount double, day date"
RULES = """
  - {name: values, type: accepted_values, column: name, values: [ann, bob]}
  - {name: values or null, type: accepted_values, column: NAME, values: [ann, bob],
     allow_null: true}
  - {name: numbers, type: accepted_values, column: id, values: [1, 2, 3.0]}
  - {name: range, type: in_range, column: amount, min: 0, max: 10}
  - {name: above, type: in_range, column: amount, min: 0, exclude_min: true}
  - {name: below, type: in_range, column: amount, max: 10, exclude_max: true}
  - {name: range or null, type: in_range, column: amount, min: 0, allow_null: true}
  - {name: days, type: in_range, column: day, min: "2026-01-01", max: "2026-01-31"}
  - {name: form, type: matches, column: name, pattern: "ann|bob"}
  - {name: form or null, type: matches, column: name, pattern: '\\p{Lower}+', allow_null: true}
  - {name: digits, type: matches, column: id, pattern: '\\d'}
  - {name: known, type: references, table: people, columns: {id: key}}
  - {name: known by path, type: references, path: warehouse/people, columns: {id: key}}
  - {name: known pair, type: references, table: people, columns: {id: key, name: name}}
  - {name: pair or null, type: references, table: people, columns: {id: key, name: name},
     allow_null: true}
  - {name: held, type: in_range, column: id, min: 1, description: ids start at one}
"""
FAILED = {
    "values": 3,
    "values or null": 2,
    "numbers": 2,
    "range": 2,  # NULL, and NaN, which Spark orders above every number
    "above": 3,
    "below": 3,
    "range or null": 1,
    "days": 2,
    "form": 3,  # "bobby" holds "bob" and is not of its form
    "form or null": 1,
    "digits": 0,
    "known": 2,
    "known by path": 2,
    "known pair": 3,
    "pair or null": 2,
    "held": 0,
}


def people(bench: Workbench, *, ids: tuple[int | None, ...] = (1, 1, 2, 3, None)) -> None:
    """A table to look into; a key stands in it twice, and one is NULL."""
    import pyarrow as pa
    from deltalake import write_deltalake

    names = ["ann", "ann", "bob", "cid", "dan"][: len(ids)]
    rows = pa.table({"key": pa.array(ids, pa.int64()), "name": names})
    write_deltalake(str(bench.table("people")), rows, mode="overwrite")


def pipeline(
    bench: Workbench, checks: str, *, load: str = "table: t", schema: str = SCHEMA
) -> None:
    bench.pipeline(
        "p",
        f'extract: {{type: csv, path: in.csv, schema: "{schema}"}}\n'
        f"checks:\n  {checks.strip()}\nload: {{type: delta, {load}}}\n",
    )


def found(document: Any) -> dict[str, Any]:
    return {check["name"]: check for check in document["batches"][-1]["checks"]}


def test_every_check_counts_exactly_and_null_fails_unless_allowed(bench: Workbench) -> None:
    bench.write("in.csv", ROWS)
    people(bench)
    pipeline(bench, RULES.replace("}\n", ", on_fail: warn}\n"))
    document = bench.run("p")
    checks = found(document)
    assert {name: check["rows_failed"] for name, check in checks.items()} == FAILED
    assert {check["rows_checked"] for check in checks.values()} == {5}
    assert {check["step"] for check in checks.values()} == {"source"}
    assert [c["name"] for c in checks.values() if c["passed"]] == ["digits", "held"]
    assert checks["held"]["description"] == "ids start at one"
    assert '"id":4' in "".join(checks["known"]["samples"])
    assert len(document["notes"]) == len(FAILED) - 2
    assert len(bench.rows("t")) == 5  # a key that is found twice doubles no row


NEGATIVE = "id,n\n1,-1\n2,-2\n3,3\n4,4\n"


@pytest.mark.parametrize(
    ("limit", "stops"), [("2", False), ("50%", False), ("1", True), ("49.9%", True), ("0", True)]
)
def test_rows_up_to_the_limit_are_reported_and_one_more_stops_the_run(
    bench: Workbench, limit: str, stops: bool
) -> None:
    bench.write("in.csv", NEGATIVE)
    rule = f"- {{type: in_range, column: n, min: 0, max_failed: {limit}, on_fail: FATE}}"
    pipeline(bench, rule.replace("FATE", "fail"), schema="id int, n int")
    answer = bench.cli("run", "p", "--json", "--quiet")
    check = found(answer.json)["0 <= n"]
    assert (check["rows_failed"], check["max_failed"], check["passed"]) == (2, limit, not stops)
    assert answer.code == (3 if stops else 0)
    said = answer.json["error"]["message"] if stops else answer.json["notes"][0]
    assert f"2 of 4 rows, {limit} allowed, for example" in said
    assert bench.version("t") == (None if stops else 0)
    pipeline(bench, rule.replace("FATE", "quarantine"), load="table: u", schema="id int, n int")
    answer = bench.cli("run", "p", "--json", "--quiet")
    assert answer.code == (3 if stops else 0)
    if stops:
        assert "max_failed" in answer.json["error"]["hint"]
        assert (bench.version("u"), bench.version("p__quarantine")) == (None, None)
    else:
        assert [row["id"] for row in bench.rows("u")] == [3, 4]
        assert len(bench.rows("p__quarantine")) == 2


def test_rows_without_a_partner_are_set_aside_and_come_back_when_it_is_there(
    bench: Workbench,
) -> None:
    bench.write("in.csv", ROWS)
    people(bench, ids=(1, 2))
    pipeline(
        bench,
        "- {type: references, table: people, columns: {id: key}, on_fail: quarantine}\n"
        "  - {type: accepted_values, column: name, values: [bob], on_fail: drop}",
    )
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"], batch["rows_dropped"]) == (5, 3, 1)
    assert [row["id"] for row in bench.rows("t")] == [2]
    assert {row["rule"] for row in bench.rows("p__quarantine")} == {"id in people(key)"}
    people(bench, ids=(1, 2, 3, 4))
    back = bench.cli("quarantine", "replay", "p", "--set", "name='bob'", "--json", "--quiet").json
    assert (back["batches"][0]["rows_read"], back["batches"][0]["rows_quarantined"]) == (3, 1)
    assert sorted(row["id"] for row in bench.rows("t")) == [2, 3, 4]


def test_a_table_that_is_looked_into_must_be_there_with_its_columns(bench: Workbench) -> None:
    bench.write("in.csv", ROWS)
    pipeline(bench, "- {type: references, table: people, columns: {id: key}}")
    assert '"people" is not a Delta table' in bench.fail("p").stderr
    people(bench)
    pipeline(bench, "- {type: references, table: people, columns: {id: kay}}")
    said = bench.fail("p").stderr
    assert 'on "people" names column "kay"' in said
    assert 'did you mean "key"?' in said
    pipeline(bench, "- {type: references, table: people, columns: id}")
    assert 'names column "id"' in bench.fail("p").stderr


def test_values_of_another_kind_are_refused_and_not_bent(bench: Workbench) -> None:
    bench.write("in.csv", ROWS)
    for rule, says in (
        ("accepted_values, column: name, values: [1]", '"name" (string) with 1'),
        ("accepted_values, column: id, values: ['1']", '"id" (bigint) with "1"'),
        ("in_range, column: name, max: 5", '"name" (string) with 5'),
        ("in_range, column: day, min: yesterday", '"day" (date) with "yesterday"'),
        ("matches, column: name, pattern: 'a{'", "is not a regular expression: Illegal repetition"),
        ("freshness, column: id, max_age: 1h", '"id" is bigint'),
    ):
        pipeline(bench, f"- {{type: {rule}}}")
        answer = bench.fail("p")
        assert says in answer.stderr
        assert (answer.code, bench.version("t")) == (2, None)


def passing(spark: SparkSession, root: Path, sql: str, type_name: str, **options: Any) -> list[int]:
    """The ids for which a rule over rows holds."""
    plugin = find_plugin("check", type_name)
    assert plugin is not None
    rule, frame = plugin.model_validate(options), spark.sql(sql)
    assert isinstance(rule, RowCheck)
    project_ctx = ProjectContext(root=root, warehouse=str(root))
    ctx = RunContext(
        project_ctx=project_ctx, spark=spark, run_id="r", now=datetime(2026, 1, 1, tzinfo=UTC)
    )
    return sorted(row["id"] for row in frame.filter(rule.condition(ctx, frame)).collect())


def test_moments_and_truth_are_compared_as_what_they_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = """SELECT id, s.at, s.at::timestamp_ntz AS ntz, s.yes, s FROM VALUES
        (1, named_struct('at', timestamp '2026-01-01 12:00:00', 'yes', true)),
        (2, named_struct('at', timestamp '2026-01-01 11:59:59', 'yes', false)),
        (3, named_struct('at', null, 'yes', null)) AS t(id, s)"""
    noon = {"min": "2026-01-01T13:00:00+01:00"}
    for column in ("at", "s.at"):
        assert passing(spark, tmp_path, rows, "in_range", column=column, **noon) == [1]
    plain = {"column": "ntz", "max": "2026-01-01T12:00:00", "exclude_max": True}
    assert passing(spark, tmp_path, rows, "in_range", **plain) == [2]
    true = {"column": "yes", "values": [True]}
    assert passing(spark, tmp_path, rows, "accepted_values", **true) == [1]
    with pytest.raises(SpecError, match=r'"yes" \(boolean\) with 1'):
        passing(spark, tmp_path, rows, "accepted_values", column="yes", values=[1])
    with pytest.raises(SpecError, match='with "noon"'):
        passing(spark, tmp_path, rows, "in_range", column="at", min="noon")


class Still:
    """A clock that stands."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return 0.0


def judged_at(bench: Workbench, moment: datetime) -> dict[str, tuple[bool, str]]:
    config = load_project(bench.root, environ={})
    document = Project(config, clock=Still(moment)).run("p", again=True).to_json()
    return {name: (c["passed"], c["detail"]) for name, c in found(document).items()}


def test_the_newest_moment_may_be_as_old_as_is_said_and_no_older(bench: Workbench) -> None:
    bench.write(
        "in.csv", "id,at,day,never\n1,2026-01-01 12:00:00,2026-01-02,\n2,2026-01-01 11:00:00,,\n"
    )
    pipeline(
        bench,
        "- {name: at, type: freshness, column: at, max_age: 24h, on_fail: warn}\n"
        "  - {name: day, type: freshness, column: day, max_age: 1d, on_fail: warn}\n"
        "  - {name: text, type: freshness, column: \"to_timestamp('2026-01-02')\", max_age: 15m,"
        " on_fail: warn}\n"
        "  - {name: never, type: freshness, column: never, max_age: 9d, on_fail: warn}",
        schema="id int, at timestamp, day date, never timestamp",
    )
    assert judged_at(bench, datetime(2026, 1, 2, 12, tzinfo=UTC)) == {
        "at": (True, "the newest is of 2026-01-01 12:00:00 UTC, 1d old"),
        "day": (True, "the newest is of 2026-01-02 00:00:00 UTC, 12h old"),
        "text": (False, "the newest is of 2026-01-02 00:00:00 UTC, 12h old"),
        "never": (False, '"never" is NULL in every row'),
    }
    late = judged_at(bench, datetime(2026, 1, 2, 12, 0, 0, 1, tzinfo=UTC))
    assert (late["at"][0], late["day"][0]) == (False, True)
    bench.write("in.csv", "id,at,day,never\n")
    assert judged_at(bench, datetime(2026, 1, 9, tzinfo=UTC))["at"] == (True, "no rows")


def test_a_rule_that_is_no_condition_is_refused(bench: Workbench) -> None:
    bench.write("in.csv", "id\n1\n")
    pipeline(bench, "- {type: expression, rule: id + 1}", schema="id int")
    failed = bench.fail("p")
    assert failed.code == 2
    assert '"id + 1" is int; expected a condition' in failed.stderr
    pipeline(bench, "- {type: expression, rule: 'id >'}", schema="id int")
    assert '"id >" is incomplete after ">"' in bench.fail("p").stderr
    pipeline(bench, "- {type: expression, rule: id in ()}", schema="id int")
    assert "correct the SQL" in bench.fail("p").stderr


LOAD = "load: {type: delta, table: t}\n"
UNIQUE = "- {type: unique, columns: email, scope: table}"
MAIL = "id int, email string"


def load_mails(bench: Workbench, rows: str, *arguments: str) -> tuple[int, int | None]:
    """The exit code, and how many rows share their key with another."""
    bench.write("in.csv", f"id,email\n{rows}")
    answer = bench.cli("run", "p", "--json", "--quiet", *arguments)
    return answer.code, found(answer.json)["unique(email) in the table"]["rows_failed"]


def test_an_append_may_not_add_a_key_that_stands_in_the_table(bench: Workbench) -> None:
    pipeline(bench, UNIQUE, schema=MAIL)
    assert load_mails(bench, "1,a\n2,a\n3,b\n") == (3, 2)
    assert load_mails(bench, "1,a\n2,b\n3,\n") == (0, 0)
    assert load_mails(bench, "4,b\n5,c\n6,\n") == (3, 2)  # b, and NULL, which equals NULL
    assert bench.version("t") == 0
    assert load_mails(bench, "4,d\n") == (0, 0)
    assert load_mails(bench, "4,d\n", "--again") == (3, 1)
    assert load_mails(bench, "1,b\n2,c\n", "--full-refresh", "--drop-history") == (0, 0)
    plan = bench.cli("plan", "p", "--json").json
    assert "would stop the run" in plan["notes"][0]


def test_an_upsert_replaces_the_rows_of_its_keys_before_keys_are_compared(
    bench: Workbench,
) -> None:
    upsert = "table: t, mode: upsert, merge_keys: id"
    negative = "\n  - {type: in_range, column: id, min: 0, on_fail: quarantine}"
    pipeline(bench, UNIQUE + negative, load=upsert, schema=MAIL)
    assert load_mails(bench, "1,a\n2,b\n") == (0, 0)
    assert load_mails(bench, "1,b\n2,a\n3,c\n") == (0, 0)  # both are replaced: no clash
    assert load_mails(bench, "4,a\n") == (3, 1)  # row 2 stays and has it
    assert load_mails(bench, "2,x\n4,a\n") == (0, 0)
    pipeline(bench, UNIQUE + negative.replace("0,", "2,"), load=upsert, schema=MAIL)
    # row 1 is quarantined, so that the b it had in the table stays there
    assert load_mails(bench, "1,y\n5,b\n") == (3, 1)
    assert {row["id"]: row["email"] for row in bench.rows("t")} == {
        1: "b",
        2: "x",
        3: "c",
        4: "a",
    }


def merge_mails(bench: Workbench, options: str) -> None:
    merge = f"table: t, mode: upsert, merge_keys: id{options}"
    pipeline(bench, UNIQUE, load=merge, schema="id int, email string, n int")


def load_numbered(bench: Workbench, rows: str, *arguments: str) -> tuple[int, int | None]:
    bench.write("in.csv", f"id,email,n\n{rows}")
    answer = bench.cli("run", "p", "--json", "--quiet", *arguments)
    return answer.code, found(answer.json)["unique(email) in the table"]["rows_failed"]


def test_rows_that_an_upsert_does_not_take_share_their_keys_with_nobody(bench: Workbench) -> None:
    newer = ", update_condition: source.n > target.n, delete_condition: source.n < 0"
    merge_mails(bench, newer)
    assert load_numbered(bench, "1,a,5\n2,b,5\n9,a,-1\n") == (0, 0)  # row 9 is nobody's yet
    assert load_numbered(bench, "1,b,4\n3,c,5\n") == (0, 0)  # too old: row 1 stays, with a
    assert load_numbered(bench, "1,x,4\n4,a,5\n") == (3, 1)  # and so its a is taken
    assert load_numbered(bench, "1,x,6\n4,a,5\n") == (0, 0)
    assert load_numbered(bench, "2,,-1\n5,b,1\n") == (0, 0)  # row 2 goes, and its b with it
    assert load_numbered(bench, "6,z,1\n7,z,1\n8,c,1\n") == (3, 3)
    assert load_numbered(bench, "6,x,1\n", "--full-refresh") == (0, 0)


def test_columns_that_an_update_leaves_alone_stay_as_they_are(bench: Workbench) -> None:
    merge_mails(bench, ", update_columns: n, not_matched_by_source: delete")
    assert load_numbered(bench, "1,a,5\n2,b,5\n3,c,5\n") == (0, 0)
    assert load_numbered(bench, "1,b,6\n2,b,6\n4,x,6\n") == (0, 0)  # 1 keeps its a, and 3 goes
    assert load_numbered(bench, "1,q,6\n2,r,6\n5,b,6\n") == (3, 1)  # 2 keeps its b
    assert load_numbered(bench, "1,q,6\n2,r,6\n5,c,6\n") == (0, 0)
    merge_mails(bench, ", update_condition: source.n > target.n, not_matched_by_source: delete")
    assert load_numbered(bench, "1,x,0\n6,a,1\n") == (3, 1)  # 1 is too old and keeps its a
    assert load_numbered(bench, "1,x,7\n6,a,1\n") == (0, 0)


def test_of_rows_with_one_merge_key_only_the_winner_counts(bench: Workbench) -> None:
    merge_mails(bench, ", duplicates: {keep: newest, by: n}")
    assert load_numbered(bench, "1,a,1\n1,a,2\n2,b,1\n1,b,0\n") == (0, 0)
    assert load_numbered(bench, "3,a,1\n3,c,2\n") == (0, 0)
    assert load_numbered(bench, "4,c,1\n") == (3, 1)


def test_an_overwrite_compares_with_what_it_leaves(bench: Workbench) -> None:
    part = "table: t, mode: overwrite, replace_where: id < 10"
    pipeline(bench, UNIQUE, load="table: t", schema=MAIL)
    assert load_mails(bench, "1,a\n11,k\n") == (0, 0)
    pipeline(bench, UNIQUE, load=part, schema=MAIL)
    assert load_mails(bench, "2,a\n") == (0, 0)
    assert load_mails(bench, "3,k\n") == (3, 1)
    pipeline(bench, UNIQUE, load="table: t, mode: overwrite", schema=MAIL)
    assert load_mails(bench, "3,k\n") == (0, 0)


def test_a_column_that_the_table_gets_only_now_is_null_in_its_rows(bench: Workbench) -> None:
    pipeline(bench, UNIQUE, load="table: t, merge_schema: true", schema=MAIL)
    bench.write("in.csv", "id\n1\n")
    bench.pipeline("q", 'extract: {type: csv, path: in.csv, schema: "id int"}\n' + LOAD)
    bench.run("q")
    assert load_mails(bench, "2,a\n3,\n") == (3, 1)
    assert load_mails(bench, "2,a\n3,b\n") == (0, 0)


class Cut(BaseException):
    """The end of the process, as far as the run can tell."""


def test_a_batch_that_landed_in_one_sink_is_not_compared_with_itself(bench: Workbench) -> None:
    def cut(event: Event) -> None:
        if isinstance(event, Committed):
            raise Cut

    bench.write("in.csv", "id,email\n1,a\n2,b\n")
    bench.pipeline(
        "p",
        f'extract: {{type: csv, path: in.csv, schema: "{MAIL}"}}\nchecks:\n  {UNIQUE}\n'
        "load:\n  - {type: delta, table: t}\n  - {type: delta, table: u}\n",
    )
    with pytest.raises(Cut):
        bench.open(listeners=[cut]).run("p")
    assert (bench.version("t"), bench.version("u")) == (0, None)
    bench.run("p")
    assert len(bench.rows("t")) == len(bench.rows("u")) == 2


def test_what_checks_found_can_be_asked_run_by_run(bench: Workbench) -> None:
    rule = "- {name: positive, type: in_range, column: n, min: 0, description: no debts}"
    rule += "\n  - {type: row_count, min: 1}"
    for rows in ("1,1\n2,2\n", "3,-3\n4,4\n", "5,5\n"):
        bench.write("in.csv", f"id,n\n{rows}")
        pipeline(bench, rule, schema="id int, n int")
        bench.cli("run", "p", "--quiet")
    document = bench.cli("checks", "p", "--check", "positive", "--json").json
    assert document["pipeline"] == "p"
    facts = [
        (check["rows_checked"], check["rows_failed"], check["passed"], check["on_fail"])
        for check in document["checks"]
    ]
    assert facts == [(2, 0, True, "fail"), (2, 1, False, "fail"), (1, 0, True, "fail")]
    runs = [run["run_id"] for run in bench.cli("runs", "list", "--json").json["runs"]]
    assert [check["run_id"] for check in document["checks"]] == runs[::-1]
    assert {(c["description"], c["step"], c["type"]) for c in document["checks"]} == {
        ("no debts", "source", "in_range")
    }
    records = bench.open().checks("p", last=1)
    assert [(r.run_id, r.name, r.batch) for r in records] == [
        (runs[0], "positive", 3),
        (runs[0], "1 <= rows", 3),
    ]
    lines = bench.cli("checks", str(bench.root / "pipelines" / "p.yaml")).stdout.splitlines()
    assert lines[0].split() == ["run", "at", "step", "check", "rows", "failed", "result"]
    assert [line.split()[-1] for line in lines[1:]] == ["passed", "passed", "(fail)", "passed"] + [
        "passed"
    ] * 2
    answer = bench.cli("checks", "p", "--check", "postive")
    assert (answer.code, 'did you mean "positive"?' in answer.stderr) == (2, True)
