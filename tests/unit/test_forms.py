"""Maps and variants are compared by a form that keeps every byte."""

from __future__ import annotations

from deltaworks.engines.spark.frames.comparable import form, needs_form

TEXTS = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}


def test_what_spark_compares_stays_as_it_is() -> None:
    plain = {"type": "struct", "fields": [{"name": "a", "type": "long"}]}
    assert not needs_form(plain)
    assert form("source.`s`", plain) == "source.`s`"
    assert form("x", {"type": "array", "elementType": "string"}) == "x"


def test_entries_of_a_map_are_sorted() -> None:
    assert form("m", TEXTS) == (
        "array_sort(transform(map_entries(m), x0 -> named_struct('k', x0.key, 'v', x0.value)))"
    )


def test_a_variant_is_told_by_its_json_and_its_types() -> None:
    assert form("v", "variant") == (
        "named_struct('json', to_json(v), 'type', schema_of_variant(v))"
    )


def test_what_lies_within_is_found_and_names_do_not_meet() -> None:
    inner = {"type": "struct", "fields": [{"name": "a`b", "type": TEXTS}]}
    found = form("s", {"type": "array", "elementType": inner})
    assert found.startswith("transform(s, x0 -> CASE WHEN x0 IS NOT NULL THEN named_struct('f0', ")
    assert "transform(map_entries(x0.`a``b`), x2 -> " in found
