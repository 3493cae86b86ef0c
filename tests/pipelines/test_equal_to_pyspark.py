"""A pipeline of steps gives the same table as the same thing written by hand in PySpark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.pipelines.applying import Bench, step
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

EXAMPLES = 15
STEPS_IN_A_SCRIPT = 6
ODD_NAMES = ("n", "größe", "名前", "a b", "x.y", "select", "Ünit-1")
SIDES = ("ours", "theirs")
Hand = Callable[["DataFrame", "DataFrame"], "DataFrame"]


def sql_name(name: str) -> str:
    return f"`{name}`"


@dataclass(frozen=True)
class Shape:
    """The columns a random table has: each kind under a random name, in a random order."""

    names: dict[str, str]
    order: tuple[str, ...]

    def ddl(self) -> str:
        kinds = {
            "id": "int",
            "number": "int",
            "text": "string",
            "money": "decimal(9,2)",
            "moment": "timestamp",
            "place": "struct<city: string, geo: struct<lat: double, `ü.n`: int>>",
            "items": "array<int>",
        }
        return ", ".join(f"{sql_name(self.names[kind])} {kinds[kind]}" for kind in self.order)


@dataclass
class Script:
    """Steps as a file writes them, beside the same by hand; it knows which columns are left."""

    shape: Shape
    columns: dict[str, str] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    hand: list[Hand] = field(default_factory=list)

    def add(self, options: dict[str, Any], hand: Hand) -> None:
        self.steps.append(options)
        self.hand.append(hand)


def col(name: str) -> Any:
    from pyspark.sql import functions as F

    return F.col(sql_name(name))


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    kinds = ("id", "number", "text", "money", "moment", "place", "items")
    names = draw(st.permutations(ODD_NAMES))
    order = draw(st.permutations(kinds))
    return Shape(dict(zip(kinds, names, strict=True)), tuple(order))


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def rows_of(shape: Shape) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    moments = st.integers(0, 2**31).map(lambda s: datetime.fromtimestamp(s, UTC))
    geo = st.tuples(maybe(st.floats(-9, 9, width=16)), maybe(st.integers(-3, 3)))
    values: dict[str, st.SearchStrategy[Any]] = {
        "id": st.integers(0, 3),
        "number": maybe(st.integers(-5, 5)),
        "text": maybe(st.text("aé名 ", max_size=3)),
        "money": maybe(st.integers(-999, 999).map(lambda n: Decimal(n) / 100)),
        "moment": maybe(moments),
        "place": maybe(st.tuples(maybe(st.sampled_from(["Ghent", "Łódź"])), maybe(geo))),
        "items": maybe(st.lists(maybe(st.integers(0, 9)), max_size=3)),
    }
    return st.lists(st.tuples(*[values[kind] for kind in shape.order]), min_size=3, max_size=8)


def _select(draw: st.DrawFn, script: Script) -> None:
    kept = [kind for kind in script.columns if draw(st.integers(0, 4))] or [
        next(iter(script.columns))
    ]
    script.columns = {kind: script.columns[kind] for kind in kept}
    names = list(script.columns.values())
    script.add({"type": "select", "columns": names}, lambda df, _: df.select(*map(col, names)))


def _filter(draw: st.DrawFn, script: Script) -> None:
    if "number" in script.columns:
        name, least = script.columns["number"], draw(st.integers(-5, 5))
        text = f"{sql_name(name)} >= {least}"
        script.add(
            {"type": "filter", "condition": text}, lambda df, _: df.where(col(name) >= least)
        )
    if "place" in script.columns:
        place = script.columns["place"]
        script.add(
            {"type": "filter", "condition": f"{sql_name(place)}.city is distinct from 'Ghent'"},
            lambda df, _: df.where(~col(place)["city"].eqNullSafe("Ghent")),
        )


def _cast(draw: st.DrawFn, script: Script) -> None:
    if "money" in script.columns:
        name, kind = script.columns["money"], draw(st.sampled_from(["string", "double"]))
        script.columns = {k: v for k, v in script.columns.items() if k != "money"}
        script.add(
            {"type": "cast", "columns": {name: kind}},
            lambda df, _: df.withColumn(name, col(name).cast(kind)),
        )
    if "place" in script.columns:
        place = script.columns["place"]
        script.add(
            {"type": "cast", "columns": {f"{place}.geo.ü.n": "bigint"}},
            lambda df, _: df.withColumn(
                place,
                col(place).withField(
                    "geo",
                    col(place)["geo"].withField("`ü.n`", col(place)["geo"]["ü.n"].cast("bigint")),
                ),
            ),
        )
        script.columns = {
            ("cast place" if k == "place" else k): v for k, v in script.columns.items()
        }


def _derive(draw: st.DrawFn, script: Script) -> None:
    if "number" in script.columns and "id" in script.columns:
        number, key = script.columns["number"], script.columns["id"]
        by = draw(st.integers(2, 4))
        script.add(
            {"type": "derive", "columns": {number: f"{sql_name(number)} * {by} + {sql_name(key)}"}},
            lambda df, _: df.withColumn(number, col(number) * by + col(key)),
        )


def _rename(draw: st.DrawFn, script: Script) -> None:
    kind = draw(st.sampled_from(sorted(script.columns)))
    old, new = script.columns[kind], f"{script.columns[kind]} é{len(script.steps)}"
    script.columns = {k: (new if k == kind else v) for k, v in script.columns.items()}
    script.add(
        {"type": "rename", "columns": {old: new}}, lambda df, _: df.withColumnRenamed(old, new)
    )


def _fill(draw: st.DrawFn, script: Script) -> None:
    from pyspark.sql import functions as F

    for kind, value in (("number", 7), ("text", "名"), ("money", "1.25")):
        if kind in script.columns and draw(st.booleans()):
            name = script.columns[kind]
            plain = F.lit(Decimal("1.25")).cast("decimal(9,2)") if kind == "money" else F.lit(value)
            script.add({"type": "fill", "columns": {name: value}}, _filled_by_hand(name, plain))


def _filled_by_hand(name: str, plain: Column) -> Hand:
    from pyspark.sql import functions as F

    return lambda df, _: df.withColumn(name, F.when(col(name).isNull(), plain).otherwise(col(name)))


def _deduplicate(_: st.DrawFn, script: Script) -> None:
    script.add({"type": "deduplicate"}, lambda df, _: df.dropDuplicates())


def _union(_: st.DrawFn, script: Script) -> None:
    """Another table of the first shape joins in, while no column has another type than at first."""
    if not {"cast", "explode", "aggregate"} & {options["type"] for options in script.steps}:
        script.add(
            {"type": "union", "with": ["other"], "missing_columns": "fill"},
            lambda df, other: df.unionByName(other, allowMissingColumns=True),
        )
        script.columns = {**script.shape.names, **script.columns}


def _explode(draw: st.DrawFn, script: Script) -> None:
    from pyspark.sql import functions as F

    if "items" in script.columns:
        name, outer = script.columns.pop("items"), draw(st.booleans())
        generator = F.explode_outer if outer else F.explode
        script.add(
            {"type": "explode", "column": name, "outer": outer},
            lambda df, _: df.withColumn(name, generator(col(name))),
        )


def _aggregate(_: st.DrawFn, script: Script) -> None:
    from pyspark.sql import functions as F

    if {"id", "number"} <= script.columns.keys():
        key, number = script.columns["id"], script.columns["number"]
        figures = [
            {"function": "sum", "column": number, "alias": "Σ"},
            {"function": "count", "alias": "rows"},
        ]
        script.columns = {"id": key}
        script.add(
            {"type": "aggregate", "group_by": [key], "aggregations": figures},
            lambda df, _: df.groupBy(col(key)).agg(
                F.sum(col(number)).alias("Σ"), F.count("*").alias("rows")
            ),
        )


STEPS = (
    _select,
    _filter,
    _cast,
    _derive,
    _rename,
    _fill,
    _deduplicate,
    _union,
    _explode,
    _aggregate,
)


@st.composite
def scripts(draw: st.DrawFn) -> tuple[Script, list[Any], list[Any]]:
    shape = draw(shapes())
    script = Script(shape, dict(shape.names))
    # hypothesis varies a choice it made before; a chance of its own makes scripts more different
    chance = draw(st.randoms(use_true_random=True))
    for make in sorted(
        chance.sample(STEPS, STEPS_IN_A_SCRIPT), key=lambda make: make is _aggregate
    ):
        make(draw, script)
    return script, draw(rows_of(shape)), draw(rows_of(shape))


def require_equal(ours: DataFrame, theirs: DataFrame, *, told: str) -> None:
    """Two tables have the same columns with the same types, and the same rows in no order."""
    from pyspark.sql import functions as F

    exact = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSXXX"}
    assert ours.schema.simpleString() == theirs.schema.simpleString(), told
    parts = [
        frame.select(F.lit(name), F.to_json(F.struct("*"), exact))
        for name, frame in (("ours", ours), ("theirs", theirs))
    ]
    rows = parts[0].union(parts[1]).collect()  # in one job, because jobs are what takes time
    found = {name: sorted(str(row[1]) for row in rows if row[0] == name) for name in SIDES}
    assert found["ours"] == found["theirs"], told


@pytest.fixture(scope="module")
def applying(jvm: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    session = jvm.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return Bench(session, tmp_path_factory.mktemp("equal"))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(made=scripts())
def test_random_steps_give_what_pyspark_gives(
    applying: Bench, made: tuple[Script, list[Any], list[Any]]
) -> None:
    script, rows, more = made
    ddl = script.shape.ddl()
    source = applying.spark.createDataFrame(rows, ddl)
    other = applying.spark.createDataFrame(more, ddl)
    ours = theirs = source
    for options, by_hand in zip(script.steps, script.hand, strict=True):
        plugin = step(options["type"], **{k: v for k, v in options.items() if k != "type"})
        assert plugin.problems() == ()
        ours = plugin.apply(applying.context, ours, {"other": other})
        theirs = by_hand(theirs, other)
    require_equal(ours, theirs, told=json.dumps(script.steps, ensure_ascii=False))


def test_a_whole_run_gives_what_pyspark_gives(jvm: SparkSession, bench: Workbench) -> None:
    from pyspark.sql import functions as F

    ddl = "id int, `größe` decimal(9,2), s struct<`x.y`: int, at: timestamp>, tags array<string>"
    moment = datetime(2026, 1, 1, 12, 30, 0, 250, tzinfo=UTC)
    rows = [
        (1, Decimal("1.10"), (5, moment), ["a", "b"]),
        (1, Decimal("1.10"), (5, moment), ["a", "b"]),
        (2, None, (None, None), []),
        (3, Decimal("9.99"), None, None),
    ]
    source = jvm.createDataFrame(rows, ddl)
    for name, frame in (("main", source), ("more", source.limit(1))):
        frame.coalesce(1).write.parquet(str(bench.root / name))
    steps: list[dict[str, Any]] = [
        {"type": "union", "input": "main", "with": ["more"]},
        {"type": "deduplicate"},
        {"type": "fill", "columns": {"größe": "0.50", "s.x.y": 0}},
        {"type": "explode", "column": "tags", "outer": True, "position": "i"},
        {"type": "rename", "columns": {"s.x.y": "z", "größe": "maß"}},
        {"type": "flatten"},
        {"type": "derive", "columns": {"double": "`maß` * 2"}},
        {"type": "filter", "condition": "tags is distinct from 'b'"},
    ]
    sources = {name: {"type": "parquet", "path": name} for name in ("main", "more")}
    bench.pipeline(
        "p",
        f"extract: {json.dumps(sources)}\ntransform: {json.dumps(steps)}\n"
        "load: {type: delta, table: t}\n",
    )
    batch = bench.run("p")["batches"][0]
    by_hand = (
        source.unionByName(source.limit(1))
        .dropDuplicates()
        .select(
            "id",
            F.coalesce("größe", F.lit(Decimal("0.50"))).cast("decimal(9,2)").alias("maß"),
            F.when(F.col("s").isNotNull(), F.coalesce("s.`x.y`", F.lit(0))).alias("s_z"),
            F.col("s.at").alias("s_at"),
            F.posexplode_outer("tags").alias("i", "tags"),
        )
        .withColumn("double", F.col("maß") * 2)
        .where(~F.col("tags").eqNullSafe("b"))
    )
    written = jvm.read.format("delta").load(str(bench.table("t")))
    columns = ["id", "maß", "s_z", "s_at", "i", "tags", "double"]
    require_equal(written.select(columns), by_hand.select(columns), told="the whole run")
    assert (batch["rows_read"], batch["rows_dropped"]) == (5, 3)
