"""P7: a Delta source reads a table as it is, as of a version or as of a moment, as it was then."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from deltaworks.errors import TableNotFound, VersionNotFound
from deltaworks.sources.delta import DeltaSource
from tests.tables.loader import Loader
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def day(n: int, **later: int) -> str:
    """The moment version n was committed, or a while later; Delta lets us look back seven days."""
    return (TODAY + timedelta(days=n - 3, **later)).isoformat()


@pytest.fixture(scope="module")
def travelled(jvm: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Loader:
    """Three versions a day apart, each with one row more; the last with a column more."""
    loader = Loader(jvm.newSession(), tmp_path_factory.mktemp("travelled"))
    loader.load("(1) AS t(id)")
    loader.load("(2) AS t(id)")
    loader.load("(3, 'x') AS t(id, v)", merge_schema=True)
    for version in range(3):
        seconds = datetime.fromisoformat(day(version)).timestamp()
        os.utime(loader.path / "_delta_log" / f"{version:020d}.json", (seconds, seconds))
    return loader


def read(loader: Loader, **options: Any) -> DataFrame:
    source = DeltaSource.model_validate({"table": "t", **options})
    assert source.problems() == ()
    bounds = source.bounds(loader.context.project_ctx, None)
    frame = source.read(loader.context, bounds)
    assert source.rows(loader.context.project_ctx, bounds) == frame.count()
    assert source.tables_read(loader.context.project_ctx) == (str(loader.path),)
    return frame


@pytest.mark.parametrize(
    ("options", "ids", "columns"),
    [
        ({}, [1, 2, 3], ["id", "v"]),
        ({"version_as_of": 0}, [1], ["id"]),
        ({"version_as_of": 1}, [1, 2], ["id"]),
        ({"timestamp_as_of": day(1)}, [1, 2], ["id"]),
        ({"timestamp_as_of": day(1, hours=23)[:19]}, [1, 2], ["id"]),
        ({"timestamp_as_of": day(2, minutes=30).replace("+00:00", "+01:00")}, [1, 2], ["id"]),
        ({"timestamp_as_of": day(2)[:10]}, [1, 2, 3], ["id", "v"]),
    ],
    ids=["latest", "first", "second", "moment", "between", "other_zone", "last_moment"],
)
def test_a_table_is_read_as_it_was_with_the_schema_it_had(
    travelled: Loader, options: dict[str, Any], ids: list[int], columns: list[str]
) -> None:
    frame = read(travelled, **options)
    assert frame.columns == columns
    assert sorted(row["id"] for row in frame.collect()) == ids


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"version_as_of": 3}, ("no version 3", "0 to 2")),
        ({"version_as_of": -1}, ("no version -1", "0 to 2")),
        (
            {"timestamp_as_of": day(-1)},
            (f"no version at {day(-1)}", f"from {day(0)[:19]}.000+00:00 to {day(2)[:19]}"),
        ),
        ({"timestamp_as_of": day(2, seconds=1)}, ("no version at", f"from {day(0)[:19]}")),
    ],
    ids=["above", "below", "before", "after"],
)
def test_out_of_range_is_refused_with_the_range(
    travelled: Loader, options: dict[str, Any], shown: tuple[str, str]
) -> None:
    with pytest.raises(VersionNotFound) as caught:
        read(travelled, **options)
    assert shown[0] in caught.value.message
    assert shown[1] in caught.value.hint


def test_what_is_no_table_is_not_found_whatever_is_asked(tmp_path: Path, loader: Loader) -> None:
    (tmp_path / "warehouse" / "t").mkdir(parents=True)
    for options in ({}, {"version_as_of": 0}, {"timestamp_as_of": "2026-01-01"}):
        with pytest.raises(TableNotFound, match='"t" is not a Delta table'):
            read(loader, **options)


def test_a_table_made_anew_is_not_the_one_that_was_planned(loader: Loader) -> None:
    loader.load("(1) AS t(id)")
    source = DeltaSource(table="t")
    bounds = source.bounds(loader.context.project_ctx, None)
    assert source.still_there(loader.context.project_ctx, bounds) == ""
    shutil.rmtree(loader.path)
    assert "not a Delta table" in source.still_there(loader.context.project_ctx, bounds)
    loader.load("(1) AS t(id)")
    assert source.still_there(loader.context.project_ctx, bounds) == "it is another table now"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, 'say either "table" or "path"'),
        ({"table": "a b"}, "is not a table name"),
        ({"table": "t", "version_as_of": 1, "timestamp_as_of": "2026-01-01"}, "exclude each other"),
        ({"table": "t", "ignore_deletes": True}, 'needs "incremental: true"'),
        ({"table": "t", "incremental": True, "version_as_of": 1}, "reads up to the latest version"),
        (
            {
                "table": "t",
                "incremental": True,
                "skip_change_commits": True,
                "ignore_changes": True,
            },
            "exclude each other",
        ),
    ],
)
def test_options_that_contradict_each_other_are_named(
    options: dict[str, Any], problem: str
) -> None:
    found = DeltaSource.model_validate(options).problems()
    assert any(problem in text for text in found)


def test_a_moment_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match='"yesterday" is not a timestamp'):
        DeltaSource(table="t", timestamp_as_of="yesterday")


def test_a_pipeline_copies_an_old_version_by_path(bench: Workbench) -> None:
    bench.write("in.csv", "id\n1\n")
    bench.pipeline("p", "extract: {type: csv, path: in.csv}\nload: {type: delta, table: t}\n")
    bench.run("p")
    bench.run("p", "--again")
    bench.pipeline(
        "copy",
        "extract: {type: delta, path: warehouse/t, version_as_of: 0}\n"
        "load: {type: delta, table: copy, mode: overwrite}\n",
    )
    batch = bench.run("copy")["batches"][0]
    assert (batch["rows_read"], len(bench.rows("copy")), len(bench.rows("t"))) == (1, 1, 2)


def test_versions_whose_files_may_be_gone_are_refused_with_the_property_that_keeps_them(
    loader: Loader,
) -> None:
    for n in (1, 2):
        loader.load(f"({n}) AS t(id)")
    for version in (0, 1):
        os.utime(
            loader.path / "_delta_log" / f"{version:020d}.json", (1_700_000_000 + version,) * 2
        )
    assert read(loader).count() == 2
    with pytest.raises(VersionNotFound, match="Cannot time travel beyond") as caught:
        read(loader, version_as_of=0)
    assert "delta.deletedFileRetentionDuration" in caught.value.hint
