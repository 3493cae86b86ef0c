"""Functions of the user's own: frames and rows go in and come out, and errors are told shortly."""

from __future__ import annotations

import importlib
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.errors import SpecError
from tests.e2e.screens import assert_short_and_clear
from tests.pipelines.applying import Bench, step
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLEANING = """
from __future__ import annotations

from dataclasses import dataclass

import helpers.words as words
from helpers.numbers import twice


@dataclass
class Note:
    text: str


def frame_only(df):
    return df.filter("id > 1").withColumn("n2", df["n"] * twice(1))


def with_context(df, ctx):
    from pyspark.sql import functions as F

    upper = F.udf(lambda text: words.loud(text), "string")
    return df.select("id", upper("name").alias("name"), F.lit(ctx.run_id).alias("run"))


def per_row(row):
    from helpers.late import suffix

    note = Note(words.loud(row["name"]) if row["name"] else "")
    row["s"]["x"] = twice(row["s"]["x"])
    return {
        "id": row["id"],
        "name": note.text + suffix(),
        "price": row["price"] * 2 if row["price"] is not None else None,
        "at": row["at"],
        "hour": row["at"].hour,
        "s": row["s"],
        "tags": [*row["tags"], "é"],
        "ratio": 1,
    }


def wrong(row):
    given = {"name": row["id"]}
    return given


def fails(row):
    number = 1
    return {"n": number / (row["id"] - 2)}


def frame_fails(df):
    missing = df.select("nothing_like_it")
    return missing


def returns_nothing(df):
    df.count


def no_arguments():
    return None
"""
HELPERS = {
    "helpers/words.py": "def loud(text):\n    return None if text is None else text.upper()\n",
    "helpers/numbers.py": "def twice(n):\n    return 2 * n\n",
    "helpers/late.py": "def suffix():\n    return '!'\n",
}
ROWS = """
SELECT * FROM VALUES
  (1, 'ann', 1, 1.50BD, timestamp'2026-10-25 00:30:00', named_struct('x', 1), array('a')),
  (2, null, 2, null, timestamp'2026-10-25 01:30:00', named_struct('x', 2), array())
AS t(id, name, n, price, at, s, tags)
"""
GIVES = (
    "id int, name string, price decimal(9,2), at timestamp, hour int, s struct<x: int>, "
    "tags array<string>, ratio double"
)


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Bench:
    write_project(Workbench(tmp_path))
    return Bench(spark, tmp_path)


def write_project(bench: Workbench) -> None:
    bench.write("transforms/cleaning.py", CLEANING)
    for name, text in HELPERS.items():
        bench.write(name, text)


def test_a_function_takes_and_returns_a_frame(project: Bench) -> None:
    place = "transforms/cleaning.py"
    rows = project.frame(ROWS, type="python", function=f"{place}:frame_only").select("id", "n2")
    assert [tuple(row) for row in rows.collect()] == [(2, 4)]
    named = project.rows(ROWS, type="python", function="transforms.cleaning:with_context")
    assert named == [(1, "ANN", "r"), (2, None, "r")]
    assert not {"transforms.cleaning", "helpers", "helpers.words"} & sys.modules.keys()
    assert str(project.context.project_ctx.root) not in sys.path
    assert list(project.context.project_ctx.root.rglob("__pycache__")) == []


def test_a_function_takes_and_returns_rows(project: Bench) -> None:
    frame = project.frame(
        ROWS, type="python", function="transforms/cleaning.py:per_row", row=True, schema=GIVES
    )
    assert frame.schema.simpleString() == (
        "struct<id:int,name:string,price:decimal(9,2),at:timestamp,hour:int,s:struct<x:int>,"
        "tags:array<string>,ratio:double>"
    )
    rows = [tuple(row) for row in frame.withColumn("at", frame["at"].cast("long")).collect()]
    at = [int(datetime(2026, 10, 25, h, 30, tzinfo=UTC).timestamp()) for h in (0, 1)]
    assert sorted(rows) == [
        (1, "ANN!", Decimal("3.00"), at[0], 0, (2,), ["a", "é"], 1.0),
        (2, "!", None, at[1], 1, (4,), ["é"], 1.0),
    ]


def test_a_module_that_is_installed_or_was_imported_before_is_used(project: Bench) -> None:
    root = project.context.project_ctx.root
    installed = project.frame(ROWS, type="python", function="inspect:unwrap")
    assert installed.columns == ["id", "name", "n", "price", "at", "s", "tags"]
    (root / "mine.py").write_text("def same(df):\n    return df\n", encoding="utf-8")
    sys.path.insert(0, str(root))
    try:
        mine = importlib.import_module("mine")
        project.frame(ROWS, type="python", function="mine:same")
        assert sys.modules["mine"] is mine
    finally:
        sys.path.remove(str(root))
        sys.modules.pop("mine")


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        (
            "transforms/cleanin.py:clean",
            'no file "transforms/cleanin.py"',
            "transforms/cleaning.py",
        ),
        ("transforms/cleaning.py:frame_onyl", "has no function", 'did you mean "frame_only"?'),
        ("transforms/cleaning.py:no_arguments", "takes 0 arguments", "no_arguments(df)"),
        ("../outside.py:clean", "lies outside the project", "move it"),
        ("transforms/../../outside.py:clean", "lies outside the project", "move it"),
        ("no_such_module_here:clean", 'no module "no_such_module_here"', "no_such_module_here.py"),
        ("transforms/cleaning.py:returns_nothing", "returned NoneType", "row: true"),
    ],
)
def test_a_function_that_is_not_there_is_named(
    project: Bench, text: str, says: str, hint: str
) -> None:
    (project.context.project_ctx.root.parent / "outside.py").write_text(
        "def clean(df): return df\n"
    )
    with pytest.raises(SpecError, match=says) as caught:
        project.frame(ROWS, type="python", function=text)
    assert hint in caught.value.hint


def test_a_link_out_of_the_project_is_refused(project: Bench) -> None:
    root = project.context.project_ctx.root
    outside = root.parent / "outside.py"
    outside.write_text("def clean(df): return df\n")
    (root / "inside.py").symlink_to(outside)
    with pytest.raises(SpecError, match="lies outside the project"):
        project.frame(ROWS, type="python", function="inside.py:clean")


def test_what_goes_together_is_said() -> None:
    assert "schema" in step("python", function="a.py:f", row=True).problems()[0]
    assert "row: true" in step("python", function="a.py:f", schema="a int").problems()[0]
    assert not step("python", function="a.py:f").columns_known()
    for text in ("clean", "a.py:", ":clean", "a.py:not a name"):
        with pytest.raises(ValueError, match="write a file and a function"):
            step("python", function=text)


def failing(bench: Workbench, **options: Any) -> str:
    """What the screen says when a step with a function fails; it is the second of two."""
    bench.write("in.csv", "id\n1\n2\n3\n")
    said = ", ".join(f"{key}: {value!r}" for key, value in options.items())
    name = f"p{len(list((bench.root / 'pipelines').glob('*')))}"
    bench.pipeline(
        name,
        "extract: {type: csv, path: in.csv, schema: id int}\n"
        "transform:\n"
        "  - {type: filter, condition: id > 0}\n"
        f"  - {{name: cleaned, type: python, {said}}}\n"
        "load: {type: delta, table: t}\n",
    )
    answered = bench.cli("run", name, "--quiet")
    assert_short_and_clear(answered)
    assert answered.code in (1, 2)
    assert bench.version("t") is None
    return answered.stderr


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(CLEANING.splitlines(), 1) if text in line)


def test_an_error_names_step_function_place_and_row(bench: Workbench) -> None:
    write_project(bench)
    place = "transforms/cleaning.py"
    told = failing(bench, function=f"{place}:fails", row="true", schema="n double")
    where = f"{place}:{line_of('number / (')}"
    what = 'step "cleaned": function fails failed on row {"id": 2}: ZeroDivisionError'
    assert f"error: {where}: {what}" in told
    told = failing(bench, function=f"{place}:wrong", row="true", schema="name string")
    assert 'function wrong failed on row {"id": ' in told
    assert 'column "name" is string, and got ' in told
    told = failing(bench, function=f"{place}:frame_fails")
    assert f"{place}:{line_of('nothing_like_it')}: " in told
    assert 'step "cleaned": function frame_fails failed' in told
    bench.write("broken.py", "import os\n\ndef clean(df)\n    return df\n")
    told = failing(bench, function="broken.py:clean")
    assert 'broken.py:3: step "cleaned": function clean failed: SyntaxError' in told
    bench.write("broken.py", "import no_such_thing\n")
    told = failing(bench, function="broken.py:clean")
    assert "broken.py:1: " in told
    assert "No module named 'no_such_thing'" in told
    bench.write(
        "broken.py",
        "from pyspark.sql import functions as F\n\n"
        "def clean(df):\n"
        "    return df.select(F.udf(lambda n: 1 // (n - 2), 'int')('id').alias('n'))\n",
    )
    told = failing(bench, function="broken.py:clean")
    assert "broken.py:4: Python code failed: ZeroDivisionError" in told


@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        (None, "struct", "it returned None; expected a dict"),
        ({}, "n int", 'column "n" of the schema is missing'),
        ({"n": 1, "m": 2}, "n int", 'the schema has no column "m"'),
        ({"n": "1"}, "n int", "column \"n\" is int, and got '1' (str)"),
        ({"n": True}, "n int", 'column "n" is int, and got True'),
        ({"n": 2**31}, "n int", 'column "n" is int, and got 2147483648'),
        ({"n": 1.5}, "n decimal(5,2)", 'column "n" is decimal(5,2), and got 1.5 (float)'),
        ({"n": Decimal("1.234")}, "n decimal(5,2)", "Decimal('1.234')"),
        ({"n": "2026-01-01"}, "n date", 'column "n" is date'),
        ({"n": datetime(2026, 1, 1, tzinfo=UTC)}, "n timestamp_ntz", "is timestamp_ntz"),
        ({"n": [1, "x"]}, "n array<int>", 'column "n[]" is int'),
        ({"n": {"a": "x"}}, "n map<string, int>", 'column "n[a]" is int'),
        ({"n": {"x": "1"}}, "n struct<x: int>", 'column "n.x" is int'),
        ({"n": 5}, "n array<int>", 'column "n" is array<int>, and got 5'),
    ],
)
def test_what_a_row_function_returns_must_fit_exactly(
    jvm: SparkSession,  # noqa: ARG001 - types are parsed by Spark
    value: Any,
    kind: str,
    says: str,
) -> None:
    from deltaworks.engines.spark.frames.columns import declared_columns
    from deltaworks.engines.spark.transforms.python_worker import fitted_to

    with pytest.raises((TypeError, ValueError)) as caught:
        fitted_to(value, declared_columns("n int" if kind == "struct" else kind), "")
    assert says in str(caught.value)


def test_a_value_that_fits_is_kept_exactly(jvm: SparkSession) -> None:  # noqa: ARG001 - the same
    from deltaworks.engines.spark.frames.columns import declared_columns
    from deltaworks.engines.spark.transforms.python_worker import fitted_to, told

    kind = declared_columns("d decimal(5,2), t timestamp, m map<string, double>, b binary, n date")
    moment = datetime(2026, 1, 1)  # noqa: DTZ001 - without a zone it is taken as UTC
    day = moment.date()
    given = {"d": 1, "t": moment, "m": {"a": 1, "b": None}, "b": b"x", "n": day}
    fitted = fitted_to(given, kind, "")
    assert fitted == (Decimal(1), moment.replace(tzinfo=UTC), {"a": 1.0, "b": None}, b"x", day)
    listed = declared_columns("a array<timestamp>, n string")
    assert told(([moment.replace(tzinfo=UTC)], None), listed)["a"][0].tzinfo is UTC
    assert told(fitted, kind) == {
        "d": Decimal(1),
        "t": moment.replace(tzinfo=UTC),
        "m": {"a": 1.0, "b": None},
        "b": b"x",
        "n": day,
    }


def test_a_worker_calls_the_function_with_a_dict_and_tells_which_row_failed(
    jvm: SparkSession,  # noqa: ARG001 - types are parsed by Spark
) -> None:
    from deltaworks.engines.spark.frames.columns import declared_columns
    from deltaworks.engines.spark.transforms.python_worker import RowFunction, UserCode

    def inverse(row: dict[str, Any]) -> dict[str, Any]:
        return {"n": 1 / row["id"]}

    code = UserCode(name="inverse", step="s", file=__file__, shown_file="shown.py")
    takes, gives = declared_columns("id int"), declared_columns("n double")
    call = RowFunction(inverse, code, takes=takes, gives=gives, root="no-such-folder")
    try:
        assert call((4,)) == (0.25,)
        with pytest.raises(ZeroDivisionError) as caught:
            call((0,))
    finally:
        sys.path.remove("no-such-folder")
    assert (
        '"message": "step \\"s\\": function inverse failed on row {\\"id\\": 0}'
        in (caught.value.__notes__[0])
    )
    long = RowFunction(
        inverse, code, takes=declared_columns("id string"), gives=gives, root=sys.path[0]
    )
    with pytest.raises(TypeError) as too_long:
        long(("x" * 999,))
    assert "..." in too_long.value.__notes__[0]
    assert len(too_long.value.__notes__[0]) < 700
