"""What checks take: limits, lengths of time, patterns and values, judged without a JVM."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from deltaworks.contracts.duration import duration, duration_text
from deltaworks.contracts.pattern import pattern_problem
from deltaworks.contracts.registry import find_plugin
from deltaworks.contracts.tolerance import tolerance
from tests.workbench import Workbench


def check(type_name: str, **options: Any) -> Any:
    plugin = find_plugin("check", type_name)
    assert plugin is not None
    return plugin.model_validate(options)


@pytest.mark.parametrize(
    ("limit", "most", "of"),
    [(0, 0, 9), (10, 10, 11), ("10", 10, 99), ("0.1%", 1, 1000), ("0.1%", 1, 1999), ("100%", 7, 7)],
)
def test_a_limit_holds_up_to_its_last_row(limit: str | int, most: int, of: int) -> None:
    assert tolerance(limit).allows(most, of=of)
    assert not tolerance(limit).allows(most + 1, of=of)


@pytest.mark.parametrize("wrong", ["ten", "-1", -1, 0.5, True, "101%", "1 %%", "", [1]])
def test_what_is_no_limit_is_refused_with_both_ways_to_write_one(wrong: object) -> None:
    with pytest.raises(ValidationError, match=r"write 10 or 0\.1%"):
        check("not_null", columns="id", max_failed=wrong)


def test_a_limit_survives_the_way_through_a_document() -> None:
    for given in (10, "0.10%"):
        made = check("not_null", columns="id", max_failed=given)
        document = made.document()
        assert document.pop("type") == "not_null"
        assert document["max_failed"] == str(given)
        assert check("not_null", **document) == made


def test_lengths_of_time_are_read_and_shown() -> None:
    assert [duration(text) for text in ("15m", "24h", "7d", "2w", "30 s")] == [
        timedelta(minutes=15),
        timedelta(hours=24),
        timedelta(days=7),
        timedelta(days=14),
        timedelta(seconds=30),
    ]
    for wrong in ("24", "1y", "h", "-1h", "1.5h", "400000d"):
        with pytest.raises(ValidationError, match="max_age"):
            check("freshness", column="at", max_age=wrong)
    shown = [timedelta(0), timedelta(seconds=-5), timedelta(hours=26, minutes=3, seconds=9)]
    assert [duration_text(length) for length in shown] == ["0s", "0s", "1d 2h"]


SURELY_WRONG = ["(", ")", "a)", "[a", "*a", "(*a)", "a|*", "a**", "a+?+", "[z-a]", "a{3,1}", "\\"]
GOOD_IN_JAVA = [
    "[a-z]+",
    r"\p{L}+\P{Lu}",
    r"\p{IsLatin}",
    r"(?<year>\d{4})-\k<year>",
    r"(?<=a{1,3})b",
    r"[a-z&&[^aeiou]]",
    "[[a](]",
    r"[\w-a]",
    "a{2}{3}",
    "^*",
    r"\Q(\E",
    r"a*+b\z",
    "[]a]",
]


@pytest.mark.parametrize("pattern", SURELY_WRONG)
def test_a_pattern_that_java_would_refuse_is_refused_without_it(pattern: str) -> None:
    assert "is not a regular expression" in pattern_problem(pattern)


@pytest.mark.parametrize("pattern", GOOD_IN_JAVA)
def test_a_pattern_that_java_takes_is_taken(pattern: str) -> None:
    assert pattern_problem(pattern) == ""


def test_a_group_is_named_as_java_names_it() -> None:
    assert '"(?<...>"' in pattern_problem("(?P<year>x)")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, 'say "min", "max" or both'),
        ({"min": 2, "max": 1}, '"min" is 2, more than "max", which is 1'),
        ({"min": 1, "max": "b"}, "must be of one kind"),
        ({"min": 1, "exclude_max": True}, '"exclude_max" needs "max"'),
    ],
)
def test_bounds_that_contradict_each_other_are_refused(options: Any, says: str) -> None:
    assert says in check("in_range", column="n", **options).problems()[0]


def test_rules_say_what_they_are() -> None:
    within = check("in_range", column="n", min=0, max=9, exclude_max=True)
    assert within.rule_text() == "0 <= n < 9"
    many = check("accepted_values", column="n", values=[1, 2, 3, 4, 5, 6])
    assert many.rule_text() == "n in (1, 2, 3, 4, 5, ...)"
    pair = check("references", table="t", columns=["a", "b"])
    assert pair.columns == {"a": "a", "b": "b"}
    assert pair.rule_text() == "a, b in t(a, b)"
    assert check("references", columns="a").problems() == ('say either "table" or "path"',)


CHECKED = (
    "extract: {type: csv, path: in.csv}\ntransform:\n  - {name: s, type: select, columns: a}\n"
)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("accepted_values, column: a, values: [x, null]", "`allow_null: true` lets it pass"),
        ("accepted_values, column: a, values: []", "expected at least one"),
        ("accepted_values, column: a, values: [[1]]", "expected one text or number"),
        ("in_range, column: a, min: true", "true and false have no order"),
        ("in_range, column: a, min: [1]", "expected one text or number"),
        ("matches, column: a, pattern: '[a-z'", "unterminated character set"),
        ("references, table: t, columns: {}", "expected at least one"),
        ("freshness, column: a, max_age: soon", "write it as 15m, 24h or 7d"),
        ("freshness, column: a, max_age: 1h, max_failed: 1", 'unknown key "max_failed"'),
        ("row_count, min: 1, on_fail: quarantine", '"on_fail" cannot be "quarantine"'),
        ("unique, columns: a, scope: table, on_fail: drop", "rows cannot be taken out"),
        ("unique, columns: a, scope: table, input: source", "no sink takes its rows"),
    ],
)
def test_a_wrong_option_is_one_problem_at_its_line(desk: Workbench, entry: str, says: str) -> None:
    desk.pipeline(
        "p", CHECKED + f"checks:\n  - {{type: {entry}}}\nload: {{type: delta, table: t}}\n"
    )
    problems = desk.cli("validate", "--json").json["problems"]
    assert [(problem["line"], says in problem["message"]) for problem in problems] == [(6, True)]


MERGED = "table: t, mode: upsert, merge_keys: id"


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ("type: delta, table: t, mode: scd2, merge_keys: id", "keeps every version of a row"),
        ("type: delta, table: t, mode: changelog, merge_keys: id", "applies changes"),
        ("type: parquet, path: t", "cannot tell which of its rows stay"),
        ("type: delta, table: t, on_failure: park", "may park batches"),
        (f"type: delta, {MERGED}, update_columns: [b, c]", "updates only some of its columns"),
        (f"type: delta, {MERGED}, insert_columns: b", "does not insert all of its columns"),
        (f"type: delta, {MERGED}, update_columns: [c], insert_columns: [A, b]", ""),
        (f"type: delta, {MERGED}, update_condition: 'source.a > 1'", ""),
    ],
)
def test_a_sink_whose_rows_cannot_be_told_is_refused(desk: Workbench, load: str, said: str) -> None:
    check = "checks:\n  - {type: unique, columns: [id, a, b.x], scope: table}\n"
    desk.pipeline("p", f"{CHECKED}{check}load: {{{load}}}\n")
    problems = desk.cli("validate", "--json").json["problems"]
    assert [said in problem["message"] for problem in problems] == ([True] if said else [])


def test_a_table_is_written_before_a_check_looks_into_it(desk: Workbench) -> None:
    source, load = "extract: {type: csv, path: in.csv}\n", "load: {type: delta, table: NAME}\n"
    rule = "checks:\n  - {type: references, table: people, columns: id}\n"
    desk.pipeline("orders", source + rule + load.replace("NAME", "orders"))
    desk.pipeline("people", source + load.replace("NAME", "people"))
    plans = desk.open().catalog().plans
    assert [plan.pipeline.name for plan in plans] == ["people", "orders"]


def test_words_about_a_check_do_not_make_another_pipeline(desk: Workbench) -> None:
    prints = set()
    for more in ("", ", description: a word", ", max_failed: 1"):
        rule = f"checks:\n  - {{type: not_null, columns: a{more}}}\n"
        desk.pipeline("p", CHECKED + rule + "load: {type: delta, table: t}\n")
        prints.add(desk.open().catalog().plans[0].pipeline.fingerprint())
    assert len(prints) == 2


@pytest.mark.parametrize(
    "command",
    [
        ("checks", "odrers"),
        ("quarantine", "list", "odrers"),
        ("quarantine", "show", "odrers"),
        ("quarantine", "discard", "odrers", "--reason", "x"),
        ("runs", "list", "--pipeline", "odrers"),
    ],
)
def test_a_misspelt_pipeline_is_named_with_the_right_one(
    desk: Workbench, command: tuple[str, ...]
) -> None:
    from deltaworks.runtime.run_records import RunRecords

    desk.pipeline("orders", CHECKED + "load: {type: delta, table: t}\n")
    desk.pipeline("broken", "extract: [")
    answer = desk.cli(*command)
    assert answer.code == 2
    assert 'there is no pipeline "odrers"' in answer.stderr
    assert 'did you mean "orders"?' in answer.stderr
    project = desk.open()
    records = RunRecords(project.config.warehouse, project.config.project_id)
    records.started("run-1", "odrers_old", project._clock.now())
    assert 'did you mean "odrers_old"?' in desk.cli("checks", "odrers_odl").stderr
    known = ["orders" if word == "odrers" else word for word in command]
    assert desk.cli(*known).code == 0
    assert desk.cli("checks", "odrers_old").stdout == "no run has recorded a check\n"
