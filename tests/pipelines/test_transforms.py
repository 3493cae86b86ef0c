"""Transforms to the last value: new names, filled gaps, one row of many, rows put together."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from deltaworks.errors import SpecError
from tests.pipelines.applying import ORDERS, Bench, by_id, step
from tests.workbench import Workbench


def test_rename_reaches_columns_fields_and_odd_names(orders: Bench) -> None:
    names = {
        "ID": "id",
        "address.city": "town",
        "address.geo.lat": "breite",
        "lines.sku": "código",
        "unit.price": "größe ü",
        "größe ü": "unit.price",
    }
    frame = orders.frame(ORDERS, type="rename", columns=names)
    assert frame.columns == [
        "id",
        "name",
        "amount",
        "address",
        "lines",
        "tags",
        "größe ü",
        "unit.price",
        "at",
    ]
    assert frame.schema["address"].dataType.simpleString() == (
        "struct<town:string,geo:struct<breite:double,lon:double>>"
    )
    values = "address.town|address.geo.breite|lines.`código`|`größe ü`|`unit.price`"
    assert [tuple(r) for r in frame.orderBy("id").selectExpr(*values.split("|")).collect()] == [
        ("Ghent", 1.5, ["a", "b"], 10, "é1"),
        (None, None, [], 20, "é2"),
        (None, None, None, None, None),
    ]
    with pytest.raises(SpecError, match='gives two columns named "name"'):
        orders.frame(ORDERS, type="rename", columns={"id": "name"})
    with pytest.raises(SpecError, match=r'rename in "address\.geo" gives two columns named "lon"'):
        orders.frame(ORDERS, type="rename", columns={"address.geo.lat": "lon"})
    with pytest.raises(SpecError, match="keys have no names to change"):
        orders.frame(ORDERS, type="rename", columns={"tags.size": "x"})
    assert step("rename", columns={"id": " "}).problems() == ('"id" needs a new name',)


def test_fill_replaces_null_only_with_values_of_the_column_s_type(orders: Bench) -> None:
    values = {
        "name": "nobody",
        "amount": "0.10",
        "address.city": "?",
        "unit.price": 7,
        "at": "2026-01-31T00:00:00Z",
        "address.geo.lat": 0,
    }
    found = by_id(orders, "name|amount|address.city|`unit.price`|at", type="fill", columns=values)
    day = [datetime(2026, 1, n, tzinfo=UTC).replace(tzinfo=None) for n in (1, 2, 31)]
    assert [row[:4] for row in found] == [
        ("ann", Decimal("2.50"), "Ghent", 10),
        ("nobody", Decimal("0.10"), "?", 20),
        ("bob", Decimal("1.25"), None, 7),  # there is no address that could have a city
    ]
    frame = orders.frame(ORDERS, type="fill", columns=values)
    assert [
        r[0] for r in frame.orderBy("id").selectExpr("cast(at as timestamp_ntz)").collect()
    ] == day


@pytest.mark.parametrize(
    ("column", "value", "says", "hint"),
    [
        ("name", 5, '5 does not fit column "name", which is string', 'in quotes: "5"'),
        ("id", "x", '"x" does not fit column "id", which is int', "of type int"),
        ("id", 1.5, "1.5 does not fit", "of type int"),
        ("id", True, "true does not fit", "of type int"),
        ("id", 2**31, "2147483648 does not fit", "of type int"),
        ("amount", 1.234, r"1.234 does not fit column .*decimal\(3,2\)", "of type"),
        ("amount", "many", '"many" does not fit', "of type"),
        ("amount", "NaN", '"NaN" does not fit', "of type"),
        ("at", "soon", '"soon" does not fit', "2026-01-31"),
        ("address.geo.lon", "x", r'does not fit column "address\.geo\.lon"', "of type double"),
        ("address", "x", "does not fit", "derive"),
        ("lines.n", 0, "lies inside an array", "explode"),
        ("tags.size", "L", "lies inside an array or a map", "explode"),
    ],
)
def test_fill_refuses_what_does_not_fit(
    orders: Bench, column: str, value: Any, says: str, hint: str
) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        orders.frame(ORDERS, type="fill", columns={column: value})
    assert hint in caught.value.hint


VERSIONS = """
SELECT * FROM VALUES (1, 'a', 1, 'x', map('k', 1)), (1, 'a', 1, 'x', map('k', 1)),
  (1, 'b', 2, 'x', null), (null, 'c', 1, 'y', null), (null, 'd', null, 'y', null)
AS t(id, v, `ts.n`, k, m)
"""


def test_deduplicate_keeps_one_row_by_rule(orders: Bench) -> None:
    whole = orders.frame(VERSIONS, type="deduplicate")
    assert whole.columns == ["id", "v", "ts.n", "k", "m"]
    assert sorted(row["v"] for row in whole.collect()) == ["a", "b", "c", "d"]
    for keep, kept in (("newest", ["b", "c"]), ("oldest", ["a", "c"])):
        rows = orders.rows(VERSIONS, type="deduplicate", columns="ID", keep=keep, by="ts.n")
        assert sorted(row[1] for row in rows) == kept
    nested = "SELECT named_struct('id', id) AS s, v, `ts.n` AS t FROM (" + VERSIONS + ")"
    rows = orders.rows(nested, type="deduplicate", columns=["s.id"], keep="newest", by="t")
    assert sorted(row[1] for row in rows) == ["b", "c"]


def test_deduplicate_stops_where_different_rows_tie(bench: Workbench) -> None:
    bench.write("in.csv", "id,v,at\n1,a,5\n1,b,5\n2,c,5\n")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\n"
        "transform:\n"
        "  - {type: deduplicate, columns: id, keep: newest, by: at}\n"
        "  - {name: again, type: deduplicate, columns: [id]}\n"
        "load: {type: delta, table: t}\n",
    )
    answered = bench.fail("p")
    assert (
        'pipelines/p.yaml:4: different rows with {"id":"1"} have the same "at"' in answered.stderr
    )
    assert bench.version("t") is None
    bench.write("in.csv", "id,v,at\n1,a,5\n1,a,5\n1,b,6\n2,c,5\n")
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_dropped"]) == (4, 2)
    assert [row["v"] for row in bench.rows("t")] == ["b", "c"]
    bench.pipeline(
        "q",
        "extract: {type: csv, path: in.csv}\n"
        "transform: [{type: deduplicate, columns: [id]}]\nload: {type: delta, table: u}\n",
    )
    answered = bench.fail("q")
    assert 'different rows with {"id":"1"} are in the batch' in answered.stderr
    assert "pipelines/q.yaml:3" in answered.stderr


def test_deduplicate_says_what_goes_together() -> None:
    assert step("deduplicate", keep="newest").problems() == ('"keep" and "by" go together',)
    assert '"columns"' in step("deduplicate", keep="newest", by="at").problems()[0]


def test_union_matches_by_name_and_widens_exactly(orders: Bench) -> None:
    first = "SELECT 1 AS id, named_struct('a', 1) AS s, 1.5BD AS `p.q`"
    more = {
        "b": "SELECT 2.25BD AS `P.Q`, 7000000000L AS ID, named_struct('a', 2) AS s",
        "c": "SELECT 3 AS id, named_struct('a', 3) AS s, null AS `p.q`",
    }
    frame = orders.frame(first, more, type="union", **{"with": ["b", "c"]})
    assert frame.columns == ["id", "s", "p.q"]
    assert sorted((r["id"], r["s"]["a"], r["p.q"]) for r in frame.collect()) == [
        (1, 1, Decimal("1.50")),
        (3, 3, None),
        (7000000000, 2, Decimal("2.25")),
    ]
    wide = {"b": "SELECT 2 AS id, named_struct('a', 2, 'b', 'x') AS s, 'n' AS extra"}
    rows = orders.rows(first, wide, type="union", missing_columns="fill", **{"with": "b"})
    assert [tuple(map(str, row)) for row in rows] == [
        ("1", "Row(a=1, b=None)", "1.5", "None"),
        ("2", "Row(a=2, b='x')", "None", "n"),
    ]


@pytest.mark.parametrize(
    ("other", "fill", "says", "hint"),
    [
        ("SELECT 1 AS id", False, 'union: "b" has no column "note"', "missing_columns: fill"),
        ("SELECT 1 AS id, 'x' AS note, 2 AS more", False, 'no column "more"', "rename"),
        ("SELECT 1 AS id, 'x' AS noet", False, 'no column "note"', 'did you mean "noet"?'),
        ("SELECT 'x' AS id, 'x' AS note", True, '"id" is int here and string in "b"', "cast"),
        ("SELECT 1 AS id, array('x') AS note", True, '"note" is string here and array', "cast"),
        ("SELECT 1.5D AS id, 'x' AS note", True, '"id" is int here and double', "cast"),
    ],
)
def test_union_refuses_columns_that_differ(
    orders: Bench, other: str, fill: bool, says: str, hint: str
) -> None:
    missing = "fill" if fill else "refuse"
    with pytest.raises(SpecError, match=says) as caught:
        orders.frame(
            "SELECT 1 AS id, 'n' AS note",
            {"b": other},
            type="union",
            missing_columns=missing,
            **{"with": "b"},
        )
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("left", "right", "fits"),
    [
        ("array(1)", "array(2L)", True),
        ("array(1)", "array('x')", False),
        ("map('a', 1)", "map('a', 2L)", True),
        ("map('a', 1)", "map(1, 2)", False),
        ("1.5F", "1.5D", True),
        ("1.00BD", "1.000BD", True),
        ("cast(1 as decimal(38,0))", "cast(1 as decimal(38,10))", False),
        ("named_struct('a', 1)", "named_struct('a', 'x')", False),
    ],
)
def test_union_takes_types_that_fit_one_type_exactly(
    orders: Bench, left: str, right: str, fits: bool
) -> None:
    other = {"b": f"SELECT {right} AS v"}
    options = {"type": "union", "missing_columns": "fill", "with": "b"}
    if fits:
        assert orders.frame(f"SELECT {left} AS v", other, **options).columns == ["v"]
        return
    with pytest.raises(SpecError, match='column "v" is'):
        orders.frame(f"SELECT {left} AS v", other, **options)


def test_join_refuses_keys_of_types_that_do_not_compare(orders: Bench) -> None:
    other = {"b": "SELECT 'x' AS id"}
    with pytest.raises(SpecError, match='"id" is int here and string in "b"') as caught:
        orders.frame("SELECT 1 AS id", other, type="join", on="id", **{"with": "b"})
    assert caught.value.hint == "cast one of them first"


def test_steps_that_look_at_all_rows_say_so() -> None:
    ranks = [{"function": "count"}]
    together = [
        step("deduplicate"),
        step("union", **{"with": "b"}),
        step("window", functions=ranks),
        step("pivot", column="a", aggregations=ranks),
        step("python", function="a.py:f"),
    ]
    assert [made.row_wise() for made in together] == [False] * len(together)
    alone = [
        step("rename", columns={"a": "b"}),
        step("fill", columns={"a": 1}),
        step("flatten"),
        step("explode", column="a"),
        step("python", function="a.py:f", row=True, schema="a int"),
    ]
    assert [made.row_wise() for made in alone] == [True] * len(alone)
    assert [made.keeps_every_row() for made in alone] == [True, True, True, False, True]
