"""Fields within fields: taken apart, made rows of, and reached by every step."""

from __future__ import annotations

from typing import Any

import pytest

from deltaworks.errors import SpecError
from tests.pipelines.applying import ORDERS, Bench, by_id


def test_flatten_takes_structs_apart(orders: Bench) -> None:
    frame = orders.frame(ORDERS, type="flatten")
    assert frame.columns[3:6] == ["address_city", "address_geo_lat", "address_geo_lon"]
    rows = by_id(orders, "address_city|address_geo_lon", type="flatten")
    assert rows == [("Ghent", 2.0), (None, None), (None, None)]
    flat = orders.frame(ORDERS, type="flatten", columns="address", separator=".", recursive=False)
    assert flat.columns[3:5] == ["address.city", "address.geo"]
    assert orders.frame(ORDERS, type="flatten", exclude="address").columns[3] == "address"
    twins = "SELECT named_struct('b', 1) AS a, 2 AS a_b"
    with pytest.raises(SpecError, match='gives two columns named "a_b"'):
        orders.frame(twins, type="flatten")
    with pytest.raises(SpecError, match=r'"lines", which is array<.*has no fields') as caught:
        orders.frame(ORDERS, type="flatten", columns="lines")
    assert "explode" in caught.value.hint


def test_explode_makes_rows_of_items_and_entries(orders: Bench) -> None:
    frame = orders.frame(ORDERS, type="explode", column="lines", position="i", outer=True)
    assert frame.columns[4:6] == ["i", "lines"]
    values = [tuple(r) for r in frame.orderBy("id", "i").select("id", "i", "lines.sku").collect()]
    assert values == [(1, 0, "a"), (1, 1, "b"), (2, None, None), (3, None, None)]
    entries = orders.frame(ORDERS, type="explode", column="tags", alias="tag")
    assert entries.columns[5:7] == ["tag_key", "tag_value"]
    assert [(r["tag_key"], r["tag_value"]) for r in entries.collect()] == [("size", "L")]
    nested = "SELECT 1 AS id, named_struct('códigos', array('x', 'y')) AS s"
    rows = orders.rows(nested, type="explode", column="s.códigos")
    assert [(row[0], row[2]) for row in rows] == [(1, "x"), (1, "y")]
    words = orders.rows("SELECT 'a b' AS t", type="explode", column="split(t, ' ')", alias="w")
    assert words == [("a b", "a"), ("a b", "b")]
    for column, says in (
        ("name", '"name" is string, neither an array nor a map'),
        ("id", '"id" is int'),
        ("array(1, 2)", 'needs an "alias"'),
        ("array(1, 2)) from x", "closes"),
    ):
        with pytest.raises(SpecError, match=says):
            orders.frame(ORDERS, type="explode", column=column)


def test_old_steps_reach_nested_fields_and_odd_names(orders: Bench) -> None:
    chosen = orders.frame(
        ORDERS, type="select", columns=["address.geo.lat", "größe ü", "tags.size"]
    )
    assert chosen.columns == ["lat", "größe ü", "size"]
    rest = orders.frame(ORDERS, type="select", exclude=["address.geo.lat", "unit.price"])
    assert rest.schema["address"].dataType.simpleString() == (
        "struct<city:string,geo:struct<lon:double>>"
    )
    assert "unit.price" not in rest.columns
    types = {"address.geo.lat": "int", "unit.price": "string"}
    cut: dict[str, Any] = {"type": "cast", "columns": types, "exact": False}
    assert by_id(orders, "address.geo.lat|`unit.price`", **cut) == [
        (1, "10"),
        (None, "20"),
        (None, None),
    ]
    new = {"address.city": "upper(address.city)", "address.zip": "'9000'", "a.b": "`größe ü`"}
    assert by_id(orders, "address.city|address.zip|`a.b`", type="derive", columns=new) == [
        ("GHENT", "9000", "é1"),
        (None, "9000", "é2"),
        (None, None, None),
    ]
    for inside in ("tags.size", "lines.n", "lines.new"):
        with pytest.raises(SpecError, match="lies inside an array or a map"):
            orders.frame(ORDERS, type="derive", columns={inside: "1"})
    with pytest.raises(SpecError, match=r'"id\.x", which does not exist'):
        orders.frame(ORDERS, type="cast", columns={"id.x": "int"})
    assert by_id(orders, "id", type="filter", condition="address.geo.lat > 1") == [(1,)]
    grouped = orders.frame(
        ORDERS,
        type="aggregate",
        group_by=["address.city"],
        aggregations=[{"function": "max", "column": "address.geo.lat"}],
    )
    assert grouped.columns == ["city", "max_address_geo_lat"]
    other = {"cities": "SELECT named_struct('city', 'Ghent') AS address"}
    for how, ids in (("semi", [1]), ("anti", [2, 3])):
        rows = orders.rows(
            ORDERS, other, type="join", on="address.city", how=how, **{"with": "cities"}
        )
        assert [row[0] for row in rows] == ids


def test_cast_sets_nested_values_aside_with_the_row_as_it_came(orders: Bench) -> None:
    source = (
        "SELECT 1 AS id, named_struct('n', 'x') AS s UNION ALL SELECT 2, named_struct('n', '5')"
    )
    marked = orders.frame(source, type="cast", columns={"s.n": "int"}, on_error="quarantine")
    rows = sorted(marked.collect(), key=lambda row: int(row["id"]))
    assert [row["s"]["n"] for row in rows] == [None, 5]
    assert rows[0][2]["reason"] == "s.n: 'x' is not int"
    assert rows[0][2]["row"] == '{"id":1,"s":{"n":"x"}}'
    assert rows[1][2] is None
