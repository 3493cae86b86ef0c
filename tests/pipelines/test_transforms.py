"""Every transform to the last value: nested fields, odd names, wrong columns, rows that leave."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.errors import SpecError
from tests.conformance.stage import counted_jobs
from tests.pipelines.applying import Bench, step
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = """
SELECT * FROM VALUES
  (1, 'ann', 2.50BD, named_struct('city', 'Ghent', 'geo', named_struct('lat', 1.5D, 'lon', 2D)),
   array(named_struct('sku', 'a', 'n', 1), named_struct('sku', 'b', 'n', 2)),
   map('size', 'L'), 10, 'é1', timestamp'2026-01-01 00:00:00'),
  (2, null, null, named_struct('city', null, 'geo', null),
   array(), map(), 20, 'é2', timestamp'2026-01-02 00:00:00'),
  (3, 'bob', 1.25BD, null, null, null, null, null, null)
AS t(id, name, amount, address, lines, tags, `unit.price`, `größe ü`, at)
"""


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def by_id(bench: Bench, columns: str = "*", /, **options: Any) -> list[tuple[Any, ...]]:
    """Rows of the orders after a step, as text expressions, in order."""
    frame = bench.frame(ORDERS, **options)
    return [tuple(row) for row in frame.orderBy("id").selectExpr(*columns.split("|")).collect()]


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


SALES = """
SELECT *, named_struct('shop', shop) AS s FROM VALUES
  ('a', 1, 10), ('a', 2, 20), ('a', 2, 30), ('a', 4, null), ('b', 1, 5)
AS t(shop, `día`, n)
"""


def test_window_computes_beside_each_row(orders: Bench) -> None:
    functions = [
        {"function": "row_number", "alias": "place"},
        {"function": "rank"},
        {"function": "dense_rank"},
        {"function": "lag", "column": "n", "offset": 2, "alias": "two_back"},
        {"function": "lead", "column": "n"},
        {"function": "sum", "column": "n", "alias": "running"},
        {"function": "avg", "column": "n", "frame": {"rows": [-1, 0]}},
        {"function": "max", "column": "n", "frame": {"range": [-1, "unbounded"]}},
        {"function": "count"},
        {"function": "first", "column": "n"},
        {"function": "last", "column": "n", "frame": {"rows": ["unbounded", "unbounded"]}},
    ]
    options = {"partition_by": "s.shop", "order_by": ["día"], "functions": functions}
    frame = orders.frame(SALES, type="window", **options)
    assert frame.columns[4:] == [
        "place",
        "rank",
        "dense_rank",
        "two_back",
        "lead_n",
        "running",
        "avg_n",
        "max_n",
        "count",
        "first_n",
        "last_n",
    ]
    rows = [tuple(row)[4:] for row in frame.orderBy("shop", "place").collect()]
    tied = rows[1][6]  # which of two equal days comes first is fixed by their content
    assert tied in (15.0, 20.0)
    low_first = tied == 15.0
    assert rows[0] == (1, 1, 1, None, 20 if low_first else 30, 10, 10.0, 30, 1, 10, None)
    assert [row[:3] for row in rows] == [(1, 1, 1), (2, 2, 2), (3, 2, 2), (4, 4, 3), (1, 1, 1)]
    assert [row[5] for row in rows] == [10, 60, 60, 60, 5]  # equal days share a running total
    assert [row[8] for row in rows] == [1, 3, 3, 4, 1]
    assert rows[3][3] == (20 if low_first else 30)
    assert rows[4] == (1, 1, 1, None, None, 5, 5.0, 5, 1, 5, 5)
    assert [tuple(r)[4:] for r in frame.repartition(3).orderBy("shop", "place").collect()] == rows
    turned = orders.frame(
        SALES, type="window", order_by="día DESC", functions=[{"function": "rank", "alias": "r"}]
    )
    assert sorted(row["r"] for row in turned.collect()) == [1, 2, 2, 4, 4]


def test_window_says_what_its_functions_need(orders: Bench) -> None:
    def problems(order_by: str = "", **function: Any) -> tuple[str, ...]:
        order = {"order_by": order_by} if order_by else {}
        found: tuple[str, ...] = step("window", functions=[function], **order).problems()
        return found

    assert problems("id", function="rank", column="n") == ('"rank" takes no "column"',)
    assert problems("id", function="sum") == ('"sum" needs a "column"',)
    assert problems(function="row_number") == ('"row_number" needs "order_by"',)
    assert problems("id", function="lag", column="n", frame={"rows": [0, 1]}) == (
        '"lag" takes no "frame"',
    )
    assert problems("id", function="sum", column="n", frame={}) == (
        'a "frame" says either "rows" or "range"',
    )
    in_range = {"function": "sum", "column": "n", "frame": {"range": [-1, 0]}}
    with pytest.raises(SpecError, match='exactly one column of numbers in "order_by"'):
        orders.frame(SALES, type="window", order_by="shop", functions=[in_range])
    with pytest.raises(SpecError, match='gives two columns named "n"'):
        orders.frame(
            SALES, type="window", order_by="n", functions=[{"function": "rank", "alias": "n"}]
        )


def test_pivot_puts_values_side_by_side(orders: Bench) -> None:
    total = {"function": "sum", "column": "n", "alias": "total"}
    source = "SELECT named_struct('d', `día`) AS s, shop, n FROM (" + SALES + ")"
    frame = orders.frame(
        source, type="pivot", group_by=["s.d"], column="shop", aggregations=[total]
    )
    assert frame.columns == ["d", "a", "b"]
    assert sorted(tuple(row) for row in frame.collect()) == [
        (1, 10, 5),
        (2, 50, None),
        (4, None, None),
    ]
    figures = [total, {"function": "count"}]
    frame = orders.frame(
        SALES, type="pivot", group_by="shop", column="día", values=[2, 9], aggregations=figures
    )
    assert frame.columns == ["shop", "2_total", "2_count", "9_total", "9_count"]
    assert sorted((row[0], row[1]) for row in frame.collect()) == [("a", 50), ("b", None)]
    days = "SELECT date'2026-01-01' AS day, 1 AS n"
    frame = orders.frame(
        days, type="pivot", column="day", values=["2026-01-01"], aggregations=[total]
    )
    assert [row.asDict() for row in frame.collect()] == [{"2026-01-01": 1}]
    with pytest.raises(SpecError, match='"soon" does not fit column "day", which is date'):
        orders.frame(days, type="pivot", column="day", values=["soon"], aggregations=[total])
    wrong = {"function": "sum", "column": "shop"}
    with pytest.raises(SpecError, match='"sum" needs numbers, and column "shop" is string'):
        orders.frame(SALES, type="pivot", column="día", values=[1], aggregations=[wrong])


def test_pivot_refuses_to_make_a_column_of_everything(orders: Bench) -> None:
    many = "SELECT id AS k, id AS n FROM range(1001)"
    with pytest.raises(SpecError, match="more than 1,000 values") as caught:
        orders.frame(many, type="pivot", column="k", aggregations=[{"function": "count"}])
    assert '"values"' in caught.value.hint
    wanted = step("pivot", column="k", aggregations=[{"function": "sum"}])
    assert wanted.problems() == ('aggregation "sum" needs a "column"',)
    assert not wanted.columns_known()
    assert wanted.left_out(orders.spark.sql(many)) is None


def test_figures_know_what_they_can_add_and_order(orders: Bench) -> None:
    source = (
        "SELECT interval '1' day AS d, named_struct('m', map('a', 1)) AS s, array(map(1, 2)) AS a, "
        "array(3) AS n, named_struct('variant', 1) AS v"
    )

    def tried(function: str, column: str) -> list[tuple[Any, ...]]:
        figures = [{"function": function, "column": column}]
        return orders.rows(source, type="aggregate", aggregations=figures)

    assert [str(row[0]) for row in tried("sum", "d")] == ["1 day, 0:00:00"]
    assert tried("max", "n") == [([3],)]
    assert [tuple(row[0]) for row in tried("min", "v")] == [(1,)]
    for function, column in (("stddev", "d"), ("max", "s"), ("min", "a"), ("sum", "n")):
        with pytest.raises(SpecError, match=f'"{function}" needs'):
            tried(function, column)


def test_join_refuses_keys_of_types_that_do_not_compare(orders: Bench) -> None:
    other = {"b": "SELECT 'x' AS id"}
    with pytest.raises(SpecError, match='"id" is int here and string in "b"') as caught:
        orders.frame("SELECT 1 AS id", other, type="join", on="id", **{"with": "b"})
    assert caught.value.hint == "cast one of them first"


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
    assert by_id(orders, "address.geo.lat|`unit.price`", type="cast", columns=types) == [
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


OTHER = {"other": "SELECT 1 AS id, 'x' AS nmae"}
SLIPS: dict[str, tuple[dict[str, Any], str]] = {
    "select": ({"type": "select", "columns": ["adress"]}, "address"),
    "select nested": ({"type": "select", "columns": ["address.ctiy"]}, "address.city"),
    "select expression": ({"type": "select", "columns": ["upper(nmae) as n"]}, "name"),
    "select exclude": ({"type": "select", "exclude": ["address.ctiy"]}, "address.city"),
    "filter": ({"type": "filter", "condition": "amuont > 1"}, "amount"),
    "filter nested": ({"type": "filter", "condition": "address.ctiy = 'x'"}, "city"),
    "filter struct": ({"type": "filter", "condition": "adress.city = 'x'"}, "address"),
    "derive": ({"type": "derive", "columns": {"x": "amuont * 2"}}, "amount"),
    "sql": ({"type": "sql", "query": "SELECT amuont FROM input"}, "amount"),
    "cast": ({"type": "cast", "columns": {"amuont": "double"}}, "amount"),
    "cast nested": ({"type": "cast", "columns": {"address.geo.lta": "int"}}, "address.geo.lat"),
    "cast type": ({"type": "cast", "columns": {"amount": "duoble"}}, "double"),
    "cast inner type": ({"type": "cast", "columns": {"lines": "array<strng>"}}, "string"),
    "cast sized type": ({"type": "cast", "columns": {"amount": "decmal(9,2)"}}, "decimal"),
    "rename": ({"type": "rename", "columns": {"größe u": "x"}}, "größe ü"),
    "fill": ({"type": "fill", "columns": {"unit.prise": 1}}, "unit.price"),
    "deduplicate": ({"type": "deduplicate", "columns": ["idd"]}, "id"),
    "deduplicate by": (
        {"type": "deduplicate", "columns": ["id"], "keep": "newest", "by": "att"},
        "at",
    ),
    "union": ({"type": "union", "with": ["other"]}, "rename"),
    "join": ({"type": "join", "with": "other", "on": ["idd"]}, "id"),
    "join other": ({"type": "join", "with": "other", "on": ["name"]}, "nmae"),
    "aggregate": (
        {"type": "aggregate", "aggregations": [{"function": "max", "column": "amuont"}]},
        "amount",
    ),
    "aggregate group": (
        {"type": "aggregate", "group_by": ["nmae"], "aggregations": [{"function": "count"}]},
        "name",
    ),
    "aggregate type": (
        {"type": "aggregate", "aggregations": [{"function": "sum", "column": "name"}]},
        "cast",
    ),
    "aggregate order": (
        {"type": "aggregate", "aggregations": [{"function": "max", "column": "tags"}]},
        "another column",
    ),
    "window part": (
        {"type": "window", "partition_by": ["nmae"], "functions": [{"function": "count"}]},
        "name",
    ),
    "window order": (
        {"type": "window", "order_by": ["idd desc"], "functions": [{"function": "rank"}]},
        "id",
    ),
    "window column": (
        {"type": "window", "functions": [{"function": "min", "column": "address.ctiy"}]},
        "address.city",
    ),
    "window type": (
        {"type": "window", "functions": [{"function": "avg", "column": "name"}]},
        "cast",
    ),
    "pivot": (
        {"type": "pivot", "column": "nmae", "aggregations": [{"function": "count"}]},
        "name",
    ),
    "flatten": ({"type": "flatten", "columns": ["adress"]}, "address"),
    "explode": ({"type": "explode", "column": "linse"}, "lines"),
    "explode nested": ({"type": "explode", "column": "address.ctiy"}, "address.city"),
    "explode expression": (
        {"type": "explode", "column": "split(nmae, ' ')", "alias": "w"},
        "name",
    ),
}


def test_a_slip_is_told_before_any_row_is_read(orders: Bench) -> None:
    from deltaworks.engines.spark.errors import translate

    told = {}
    for name, (options, _) in SLIPS.items():
        others = OTHER if "with" in options else {}
        with (
            counted_jobs(orders.spark) as jobs,
            pytest.raises(Exception, match=r".") as caught,
        ):
            orders.frame(ORDERS, others, **options)
        error = caught.value
        found = error if isinstance(error, SpecError) else translate(error)
        told[name] = (type(found), jobs.count, found.hint)
    wrong = {
        name: told[name]
        for name, (_, right) in SLIPS.items()
        if told[name][:2] != (SpecError, 0) or right not in told[name][2]
    }
    assert wrong == {}


def test_a_slip_in_a_late_step_is_told_before_refused_rows_are_counted(
    jvm: SparkSession, bench: Workbench
) -> None:
    bench.write("in.csv", "id,n\n1,5\nx,6\n")
    bench.write("more.csv", "id,m\n1,5\n")
    late = {
        6: "  - {type: filter, condition: 'amuont > 1'}\n",
        8: "  - {type: join, with: more, on: [id]}\n  - {type: select, columns: [id, nn]}\n",
    }
    for line, steps in late.items():
        more = "  more: {type: csv, path: more.csv, schema: 'id int, m int'}\n" * (line == 8)
        bench.pipeline(
            "p",
            "extract:\n"
            "  main: {type: csv, path: in.csv, schema: 'id int, n int', on_error: quarantine}\n"
            f"{more}transform:\n"
            "  - {type: cast, input: main, columns: {n: double}, on_error: quarantine}\n"
            f"{steps}checks: [{{type: not_null, columns: id}}]\nload: {{type: delta, table: t}}\n",
        )
        with counted_jobs(jvm) as jobs:
            answered = bench.fail("p")
        assert f"pipelines/p.yaml:{line}: column" in answered.stderr
        assert jobs.count == 0
    assert bench.version("t") is None
    file = bench.root / "pipelines" / "p.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("nn", "n"), encoding="utf-8")
    with counted_jobs(jvm) as jobs:
        bench.run("p")
    assert jobs.count > 0


def test_rows_that_explode_and_pivot_leave_out_are_counted(bench: Workbench) -> None:
    bench.write("in.csv", "id,tags,kind\n1,a b,x\n2,,y\n3,c,z\n")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\n"
        "transform:\n"
        "  - {type: explode, column: \"split(tags, ' ')\", alias: tag}\n"
        "  - type: pivot\n"
        "    group_by: tag\n"
        "    column: kind\n"
        "    values: [x]\n"
        "    aggregations: [{function: count}]\n"
        "load: {type: delta, table: t}\n",
    )
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_dropped"]) == (3, 2)  # row 2, and the tag of row 3
    assert bench.rows("t") == [
        {"tag": "a", "x": 1},
        {"tag": "b", "x": 1},
        {"tag": "c", "x": None},
    ]
    assert [s["rows"] for s in batch["steps"] if s["type"] in ("explode", "pivot")] == [3, 3]


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
