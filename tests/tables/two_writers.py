"""One batch, merged into two copies of a table: once by whom we choose, once by Spark."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from deltaworks.errors import DeltaworksError
from tests.tables.loader import Loader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SKIPPING = "spark.databricks.delta.stats.skipping"


def _cast(kind: str, *values: str) -> tuple[str, ...]:
    return tuple(f"CAST({value} AS {kind})" for value in values)


VALUES: dict[str, tuple[str, ...]] = {
    "tinyint": ("-128Y", "0Y", "127Y"),
    "int": ("-1", "0", "2147483647"),
    "bigint": ("-9223372036854775807L", "0L", "7L", "9007199254740993L"),
    "decimal(10,2)": _cast("decimal(10,2)", "7.25", "7.26", "-0.01"),
    "decimal(18,3)": _cast("decimal(18,3)", "941718793740892.145", "941718793740892.146", "0"),
    "decimal(38,0)": _cast("decimal(38,0)", f"'{'9' * 38}'", f"'{'9' * 37}8'", "1"),
    "date": ("DATE'0001-01-01'", "DATE'2026-01-01'", "DATE'9999-12-31'", "DATE'+12026-01-01'"),
    "timestamp": (
        "TIMESTAMP'0200-01-01 00:00:00Z'",
        "TIMESTAMP'2026-01-01 00:00:00.123456Z'",
        "TIMESTAMP'2026-01-01 00:00:00.123457Z'",
        "TIMESTAMP'9999-12-31 23:59:59.999999Z'",
        "TIMESTAMP'+12026-01-01 00:00:00Z'",
    ),
    "timestamp_ntz": (
        "TIMESTAMP_NTZ'0200-01-01 00:00:00'",
        "TIMESTAMP_NTZ'2026-01-01 00:00:00.000001'",
    ),
    "boolean": ("true", "false"),
    "double": ("double('NaN')", "0.0D", "double('-Infinity')", "1.5D"),
    "float": ("float('NaN')", "0.0F", "1.5F"),
    "string": (
        *("''", "'a'", "'A'", "'a '", "'ß\U0001f600'", "'C:\\\\\\\\x'", "'\\'\\''", "'it\\'s'"),
        *("'a/b=%'", "repeat('x', 70)", "CAST(X'FF' AS STRING)", "'${env:HOME}'"),
        "'__HIVE_DEFAULT_PARTITION__'",
    ),
    "binary": ("X''", "X'00FF'", "X'41'"),
    "varchar(4)": ("''", "'a'", "'a '", "'abcd'"),
}
KEYS = tuple(VALUES)
MORE: dict[str, tuple[str, ...]] = {
    **VALUES,
    "double": (*VALUES["double"], "-0.0D"),
    "float": (*VALUES["float"], "-0.0F"),
    "char(4)": VALUES["varchar(4)"],
    "array<int>": ("array(1, NULL)", "array(NULL, 1)", "array()"),
    "struct<a: double, b: string>": (
        "named_struct('a', double('NaN'), 'b', '')",
        "named_struct('a', NULL, 'b', CAST(X'FF' AS STRING))",
    ),
    "map<string, string>": (
        "map('k', CAST(X'FF' AS STRING))",
        "map('k', CAST(X'FE' AS STRING))",
        "map('a', '1', 'b', '2')",
        "map('b', '2', 'a', '1')",
    ),
    "variant": ("parse_json('{\"a\": 1}')", "parse_json('{\"a\": 1.0}')", "parse_json('[1]')"),
}
CONDITIONS: tuple[dict[str, Any], ...] = (
    {},
    {"update_condition": "source.v <> 'b' OR target.v IS NULL"},
    {"update_condition": r"source.v = '\u0061'"},
    {"delete_condition": "source.v = 'gone'"},
    {"insert_columns": ["v"]},
)
WORDS = ("'a'", "'b'", "'gone'", "NULL")
Row = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table of a key, a word and one more column, its first rows and those that come."""

    key: str
    extra: str
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    folders: str = ""
    options: dict[str, Any] = field(default_factory=dict)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    key, extra = draw(st.sampled_from(KEYS)), draw(st.sampled_from(sorted(MORE)))
    row = st.tuples(
        st.sampled_from(VALUES[key]),
        st.sampled_from(WORDS),
        st.sampled_from((*MORE[extra], "NULL")),
    )
    rows = st.lists(row, min_size=1, max_size=4, unique_by=lambda found: found[0])
    first, second = tuple(draw(rows)), tuple(draw(rows))
    options = draw(st.sampled_from(CONDITIONS))
    may_be_folders = [n for n, kind in (("id", key), ("x", extra)) if "<" not in kind]
    if extra == "variant":
        may_be_folders = ["id"]
    folders = draw(st.sampled_from(("", "", *may_be_folders)))
    return Case(key=key, extra=extra, first=first, second=second, folders=folders, options=options)


def compared(spark: SparkSession, case: Case, writer: str) -> str:
    """Merge the case by both; raises unless they leave the same. Answers who made the commit."""
    with TemporaryDirectory() as folder:
        ours, theirs = (Loader(spark, Path(folder) / name) for name in ("ours", "theirs"))
        ours.path.parent.mkdir(parents=True)
        folders = f"PARTITIONED BY ({case.folders})" if case.folders else ""
        columns = f"id {case.key}, v STRING, x {case.extra}"
        ours.sql(f"CREATE TABLE THIS ({columns}) USING delta {folders}")
        with_first = _done(ours, case, case.first, "spark")
        shutil.copytree(ours.path, theirs.path)
        theirs.batch = ours.batch
        seen = []
        for loader, who in ((ours, writer), (theirs, "spark")):
            done = [_done(loader, case, case.second, who) for _ in range(2)]  # again: nothing new
            seen.append((with_first, done, _rows(loader)))
        assert seen[0] == seen[1], case
        _require_found(ours, case)
        last = [action for action in ours.commits()[ours.version()] if "commitInfo" in action]
        return "deltars" if "delta-rs" in last[0]["commitInfo"].get("engineInfo", "") else "spark"


def _done(loader: Loader, case: Case, rows: tuple[Row, ...], writer: str) -> Any:
    """What a merge said: its counts, or why it was refused."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    kinds = {"id": case.key, "v": "string", "x": case.extra}
    plain = {name: "string" if "char" in kind else kind for name, kind in kinds.items()}
    selected = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in plain.items())
    values = " UNION ALL ".join(f"SELECT {k} AS id, {v} AS v, {x} AS x" for k, v, x in rows)
    try:
        info = loader.upsert(f"SELECT {selected} FROM ({values})", writer=writer, **case.options)
    except (DeltaworksError, PySparkException, Py4JError) as problem:
        return type(problem).__name__
    counts = (info.rows_inserted, info.rows_updated, info.rows_deleted, info.rows_unchanged)
    return info.committed, counts, dict(info.rows_dropped)


def _rows(loader: Loader) -> list[tuple[Any, ...]]:
    """All rows, byte by byte: not every value can be told in Python."""
    return sorted(tuple(row) for row in loader.frame().selectExpr(*map(_bytes, "ivx")).collect())


def _bytes(column: str) -> str:
    name = "id" if column == "i" else column
    return f"coalesce(hex(CAST({name} AS STRING)), 'NULL') AS {name}"


def _require_found(loader: Loader, case: Case) -> None:
    """A row is found by its key, whether files are skipped or not."""
    found = []
    for skips in ("true", "false"):
        loader.spark.conf.set(SKIPPING, skips)
        found.append(loader.frame().filter(f"id <=> {case.second[-1][0]}").count())
    assert found[0] == found[1], case
