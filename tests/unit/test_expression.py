"""SQL fragments of a file: one expression each, with no way out of the place they are put."""

from __future__ import annotations

import re

import pytest

from deltaworks.contracts.expression import (
    columns_of,
    expression_fault,
    expression_problem,
    tables_of,
    without_target,
)


@pytest.mark.parametrize(
    "text",
    [
        "x) OR (1=1",
        "x) or true -- ",
        "(x",
        "x]",
        "array(1, 2",
        "x = '",
        'x = "open',
        "`x",
        "a /* open",
        "a; drop table t",
        "a;",
        ";",
        "",
        "   ",
        "-- only a comment",
        "select 1",
        "drop table t",
        "delete from t",
        "insert into t values (1)",
        "create table t (a int)",
        "alter table t drop column a",
        "a = 1 union select 2",
        "truncate table t",
        "amount as x",
        "a b",
        "a, b",
        "amount >",
        "amount > = 0",
        "a and",
        "and a and b",
        "case when a then 1",
        "a between 1",
        "cast(a as bigintt)",
        "a = 1 b = 2",
        "upper(a b)",
        "a > 0 and (b = 1 or)",
        "a..b",
        "load = 1) or (1 = 1",
        "set x = 1",
        "show tables",
        "explain select 1",
        "use t",
        "cache table t",
        "kill 5",
        "comment on table t is 'x'",
    ],
)
def test_what_is_not_one_expression_is_refused(text: str) -> None:
    assert expression_problem(text) != ""


@pytest.mark.parametrize(
    "text",
    [
        "amount >= 0",
        "true",
        "a",
        "`odd name; with) signs` = 1",
        "x = 'it''s; (fine'",
        "x = 'say \\'yes\\''",
        "name rlike '^[A-Z]\\\\d+$'",
        "exists(items, i -> i.price > 0)",
        "transform(xs, (x, i) -> x + i)[0] = 1",
        "cast(a as decimal(12, 2)) between 0 and 10",
        "a is null or a in (1, 2, 3)",
        "case when a then 1 else 2 end = 1",
        "map('a', 1)['a'] = 1",
        "interval 1 day < b - a",
        "a <=> b",
        "a /* why */ > 0",
        "a > 0 -- why",
        "source.updated_at > target.updated_at",
        "date'2026-01-01' <= day",
        "count(*) over (partition by id order by at desc) = 1",
        "exists (select 1)",
        "payload:customer.id is not null",
        "größe > 0",
        "order > 5 and `from` = 1",
        "from > 1",
        "comment = 'x' and load > 1",
        "set = 1",
        "drop = 1",
        "commit and begin",
        "desc > 1 or values = 2",
        "a >>> 2 = 1",
        "a = X '1F'",
        "name collate UTF8_LCASE = 'x'",
        "overlay(a placing 'x' from 2 for 3) = 'y'",
        "count(*) filter (where a > 1) > 0",
        "percentile_cont(0.5) within group (order by a) > 1",
        "a div 2 = 1",
        "extract(year from b) = 2026",
        "name like any ('a%', 'b%')",
        "timestamp_ntz'2026-01-01 00:00:00' < b",
        "1.5BD + 2L > 3S",
        "b::date + interval '1' day > c",
    ],
)
def test_what_spark_takes_for_an_expression_is_accepted(text: str) -> None:
    assert expression_problem(text) == ""


def test_a_statement_that_hides_in_a_string_is_only_text() -> None:
    assert expression_problem("name = '); drop table t; --'") == ""


def test_the_message_shows_what_was_written() -> None:
    assert expression_problem("x) OR (1=1") == '"x) OR (1=1" closes ")" that was not opened'
    assert "quote or comment that is not closed" in expression_problem("x = 'a")


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("amount > = 0", '"amount > = 0" cannot be parsed at "="', 9),
        ("amount >", '"amount >" is incomplete after ">"', 7),
        ("case when a then 1", '"case when a then 1" is incomplete after "1"', 17),
        ("a = 1 b = 2", '"a = 1 b = 2" cannot be parsed at "="', 8),
        ("a > 0 or b)", '"a > 0 or b)" closes ")" that was not opened', 10),
        ("f(a", '"f(a" opens "(" and does not close it', 1),
        ("a;b", '"a;b" holds ";": expected one expression', 1),
    ],
)
def test_a_fault_has_its_place_and_no_words_of_the_parser(text: str, message: str, at: int) -> None:
    found = expression_fault(text)
    assert found is not None
    assert (found.message, found.at) == (message, at)


def test_a_long_text_is_cut_around_its_fault() -> None:
    text = "a = 1 and " * 40 + "b = = 2" + " and c = 3" * 40
    found = expression_problem(text)
    assert len(found) < 120
    assert found.endswith('" cannot be parsed at "="')


def test_columns_come_with_their_qualifier() -> None:
    assert columns_of("source.ts > target.ts and amount > 0") == (
        ("source", "ts"),
        ("target", "ts"),
        ("", "amount"),
    )
    assert columns_of("this is not sql (") == ()


def test_without_a_match_the_targets_columns_are_null() -> None:
    assert without_target("source.gone OR target.old > 1") == "source.gone OR NULL > 1"
    assert without_target("coalesce(TARGET.a, 0) = 0") == "COALESCE(NULL, 0) = 0"


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("select * from input", ("input",)),
        ("select * from a join b using (id)", ("a", "b")),
        ("with a as (select * from input) select * from a", ("input",)),
        ("select * from input where id in (select id from other)", ("input", "other")),
        ("select * from input lateral view explode(xs) t as x", ("input",)),
        ("select * from range(5)", ()),
        ("select 1", ()),
        ("select * from a union all select * from b", ("a", "b")),
        ("select * from `odd name`", ("odd name",)),
    ],
)
def test_a_query_tells_what_it_reads(query: str, tables: tuple[str, ...]) -> None:
    assert tables_of(query) == tables


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select * from shop.orders", '"shop.orders" is outside the pipeline'),
        ("select * from delta.`/tmp/x`", "is outside the pipeline"),
        ("drop table a", "expected one SELECT query"),
        ("select 1; select 2", "expected one SELECT query"),
        ("insert into a select 1", "expected one SELECT query"),
        ("create table a as select 1", "expected one SELECT query"),
        ("", "expected one SELECT query"),
        ("select * from (", 'the query opens "(" and does not close it'),
        ("select a from input where a > = 1", 'the query cannot be parsed at "="'),
        ("select a from input where", 'the query is incomplete after "where"'),
        ("select 'a from input", "the query has a quote or comment that is not closed"),
    ],
)
def test_a_query_that_reaches_outside_or_is_none_is_refused(query: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        tables_of(query)
