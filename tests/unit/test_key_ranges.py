"""B4: ranges of keys are stated exactly, or not at all."""

from __future__ import annotations

import json

import pytest

from deltaworks.engines.spark.delta.merge.key_ranges import (
    condition,
    found_range,
    has_range,
    usable,
)
from deltaworks.model.merge_facts import KeyRange
from deltaworks.model.schema import Schema


def table(kind: object, **metadata: str) -> Schema:
    field = {"name": "K", "type": kind, "nullable": True, "metadata": metadata}
    return Schema.from_json(json.dumps({"type": "struct", "fields": [field]}))


@pytest.mark.parametrize(
    ("kind", "low", "high", "text"),
    [
        ("bigint", "-5", "7", "(target.`k` BETWEEN -5L AND 7L)"),
        ("int", "1", "1", "(target.`k` = 1)"),
        ("tinyint", "1", "2", "(target.`k` BETWEEN 1Y AND 2Y)"),
        ("string", "a", "it's so", "(target.`k` BETWEEN 'a' AND 'it\\'s so')"),
        ("date", "2026-01-01", "2026-02-01", "DATE'2026-01-01' AND DATE'2026-02-01'"),
        ("timestamp", "2026-01-01 00:00:00.000001", "2026-01-02 00:00:00", "00.000001Z' AND TIME"),
        ("timestamp_ntz", "2026-01-01 00:00:00", "2026-01-01 00:00:00", "= TIMESTAMP_NTZ'2026"),
    ],
)
def test_a_range_is_a_condition_in_literals_of_its_type(
    kind: str, low: str, high: str, text: str
) -> None:
    found = found_range("k", kind, low, high, None)
    assert found is not None
    assert text in condition(found, qualifier="target.")


def test_few_values_of_a_partition_are_listed_and_many_are_bounded() -> None:
    few = found_range("c", "string", "BE", "NL", ["NL", "BE"])
    assert few is not None
    assert condition(few) == "(`c` IN ('BE', 'NL'))"
    many = found_range("c", "bigint", "0", "200", [str(n) for n in range(201)])
    assert many is not None
    assert condition(many) == "(`c` BETWEEN 0L AND 200L)"
    odd = found_range("c", "string", "a", "z", ["a", "\x00", "z"])
    assert odd is not None
    assert odd.values == ()


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("string", "a", "b\x00"),
        ("string", "a", "z" * 201),
        ("string", "C:\\data", "D:\\data"),  # settings of Spark say what a backslash is
        ("string", "a", "z${env:HOME}"),  # and whether this is text
        ("date", "2026-01-01", "+12026-01-01"),
        ("timestamp", "-0044-03-15 00:00:00", "2026-01-01 00:00:00"),
        ("bigint", None, None),
    ],
)
def test_what_a_literal_cannot_surely_say_gives_no_range(
    kind: str, low: str | None, high: str | None
) -> None:
    assert found_range("k", kind, low, high, None) is None


@pytest.mark.parametrize("kind", ["double", "float", "decimal(10,2)", "binary", "boolean"])
def test_types_whose_order_and_equality_may_part_have_no_range(kind: str) -> None:
    assert not has_range(kind)


def test_a_range_takes_the_tables_type_of_whole_number_and_no_other() -> None:
    found = KeyRange(column="k", kind="int", low="1", high="2")
    assert [r.kind for r in usable([found], table("long"))] == ["bigint"]
    assert usable([found], table("double")) == ()
    assert usable([found], table("string")) == ()


def test_collated_and_padded_text_has_no_range() -> None:
    found = KeyRange(column="k", kind="string", low="a", high="b")
    assert usable([found], table("string")) == (found,)
    assert usable([found], table("string", __COLLATIONS="{}")) == ()
    assert usable([found], table("string", __CHAR_VARCHAR_TYPE_STRING="char(5)")) == ()
    assert usable([KeyRange(column="x", kind="string", low="a", high="b")], table("string")) == ()
