"""Schemas as values: how the rows of a batch differ from the table they go to."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaworks.model.schema import (
    ADDED,
    CAST,
    CHANGED,
    MISSING,
    WIDENED,
    Schema,
    compare,
    diff_text,
    fits,
    replaced,
    type_text,
)

INTEGERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
PLAIN = ["string", "binary", "boolean", "date", "timestamp", "timestamp_ntz", "float", "double"]


def struct(**fields: Any) -> dict[str, Any]:
    entries = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in fields.items()
    ]
    return {"type": "struct", "fields": entries}


def array(kind: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


def mapped(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def schema(**fields: Any) -> Schema:
    return Schema.from_json(json.dumps(struct(**fields)))


decimals = st.integers(1, 38).flatmap(
    lambda digits: st.integers(0, digits).map(lambda scale: f"decimal({digits},{scale})")
)
plain_types = st.sampled_from([*INTEGERS, *PLAIN]) | decimals
types = st.recursive(
    plain_types,
    lambda inner: st.one_of(
        inner.map(array),
        inner.map(lambda kind: mapped("string", kind)),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(lambda d: struct(**d)),
    ),
    max_leaves=6,
)
schemas = st.dictionaries(
    st.sampled_from(["id", "name", "amount", "at", "tags"]), types, min_size=1
).map(lambda fields: schema(**fields))


@given(schemas)
def test_a_schema_does_not_differ_from_itself(one: Schema) -> None:
    assert compare(one, one) == ()


@given(schemas, schemas)
def test_what_one_side_has_more_the_other_has_less(table: Schema, batch: Schema) -> None:
    forth = {(c.kind, c.column) for c in compare(table, batch) if c.kind in (ADDED, MISSING)}
    back = {(c.kind, c.column) for c in compare(batch, table) if c.kind in (ADDED, MISSING)}
    swapped = {ADDED: MISSING, MISSING: ADDED}
    assert {(swapped[kind], column) for kind, column in forth} == back


@given(schemas, schemas)
def test_every_difference_is_one_line_that_names_its_column(table: Schema, batch: Schema) -> None:
    for change in compare(table, batch):
        assert f'"{change.column}"' in change.text()
        assert "\n" not in change.text()


@given(plain_types, plain_types, plain_types)
def test_fitting_is_transitive(a: str, b: str, c: str) -> None:
    if fits(a, into=b) and fits(b, into=c):
        assert fits(a, into=c)


@given(plain_types, plain_types)
def test_two_types_that_fit_each_other_are_one(a: str, b: str) -> None:
    if fits(a, into=b) and fits(b, into=a):
        assert a == b


@given(st.sampled_from(list(INTEGERS)), decimals)
def test_an_integer_fits_a_decimal_only_when_its_largest_value_does(
    kind: str, decimal: str
) -> None:
    digits, scale = (int(part) for part in decimal[8:-1].split(","))
    largest = 2 ** (INTEGERS[kind] - 1)
    if fits(kind, into=decimal):
        assert largest < 10 ** (digits - scale)


@given(decimals, decimals)
def test_a_decimal_fits_another_only_when_no_digit_is_lost(kind: str, into: str) -> None:
    digits, scale = (int(part) for part in kind[8:-1].split(","))
    to_digits, to_scale = (int(part) for part in into[8:-1].split(","))
    largest = Fraction(10**digits - 1, 10**scale)
    kept = to_scale >= scale and largest < 10 ** (to_digits - to_scale)
    assert fits(kind, into=into) == kept


@pytest.mark.parametrize(
    ("kind", "into", "expected"),
    [
        ("integer", "long", True),
        ("long", "integer", False),
        ("integer", "double", True),
        ("long", "double", False),
        ("integer", "float", False),
        ("float", "double", True),
        ("double", "float", False),
        ("date", "timestamp_ntz", True),
        ("date", "timestamp", False),
        ("string", "long", False),
        ("long", "string", False),
        ("void", "string", True),
        ("boolean", "integer", False),
    ],
)
def test_only_what_keeps_every_value_fits(kind: str, into: str, expected: bool) -> None:
    assert fits(kind, into=into) is expected


def kinds(table: Schema, batch: Schema, *, may_widen: bool = False) -> dict[str, str]:
    return {c.column: c.kind for c in compare(table, batch, may_widen=may_widen)}


def test_every_kind_of_difference_has_its_name() -> None:
    table = schema(id="long", old="string", small="integer", note="string")
    batch = schema(ID="integer", small="long", note="double", new="date")
    assert kinds(table, batch) == {
        "new": ADDED,
        "id": CAST,
        "old": MISSING,
        "small": CHANGED,
        "note": CHANGED,
    }
    assert kinds(table, batch, may_widen=True)["small"] == WIDENED


def test_nested_fields_are_named_by_their_path() -> None:
    table = schema(customer=struct(id="long", home=struct(city="string")), tags=array("string"))
    batch = schema(
        customer=struct(id="string", home=struct(city="string", zip="string")), tags=array("long")
    )
    assert kinds(table, batch) == {
        "customer.home.zip": ADDED,
        "customer.id": CHANGED,
        "tags.element": CHANGED,
    }


def test_of_a_missing_or_changed_parent_the_children_are_not_named() -> None:
    assert kinds(schema(a=struct(b="long")), schema(x="long")) == {"x": ADDED, "a": MISSING}
    assert kinds(schema(a=struct(b="long")), schema(a="string")) == {"a": CHANGED}


def test_types_are_spelled_as_sql_spells_them() -> None:
    kind = struct(a="long", b=array(mapped("string", "integer")))
    assert type_text(kind) == "struct<a: bigint, b: array<map<string, int>>>"
    assert schema(a="short").to_json() == [{"name": "a", "type": "smallint", "nullable": True}]


def test_a_long_diff_is_cut_where_a_person_stops_reading() -> None:
    changes = compare(schema(a="long"), schema(a="long", b="long", c="long", d="long"))
    assert diff_text(changes, most=2).splitlines() == [
        '  + "b" bigint (not in the table)',
        '  + "c" bigint (not in the table)',
        '  (and 1 more: + "d")',
    ]


def columns(*fields: dict[str, Any]) -> Schema:
    entries = [{"nullable": True, "metadata": {}, **field} for field in fields]
    return Schema.from_json(json.dumps({"type": "struct", "fields": entries}))


def test_columns_that_take_the_place_of_others_differ_in_more_than_their_types() -> None:
    old = columns(
        {"name": "id", "type": "long", "nullable": False, "metadata": {"comment": "it's the key"}},
        {"name": "n", "type": "long"},
        {"name": "gone", "type": "string"},
        {"name": "same", "type": "string", "metadata": {"comment": "c"}},
    )
    new = columns(
        {"name": "n", "type": "integer"},
        {"name": "ID", "type": "long"},
        {"name": "same", "type": "string", "metadata": {"comment": "c"}},
        {"name": "more", "type": "date"},
    )
    assert [change.text() for change in replaced(old, new)] == [
        '+ "more" date (not in the table)',
        '~ "n" table bigint, rows int (changed)',
        '- "gone" string (not in the rows: taken out of the table)',
        '~ "id" was NOT NULL, will be NULL allowed',
        '~ "id" loses its comment: "it\'s the key"',
        "~ columns in another order: id, n, same; then n, id, same",
    ]
    assert replaced(new, new) == ()
