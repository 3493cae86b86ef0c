"""Files are known by what travels with them: a name, a size, a time and their content."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from deltaworks.contracts.context import ProjectContext
from deltaworks.errors import StorageError
from deltaworks.model.batch import FILES, Bounds, FileStamp, read_together, same_bounds
from deltaworks.sources.csv import CsvSource
from deltaworks.sources.parquet import ParquetSource

DAY = 86_400
AT = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())


def project(root: Path, **files: str) -> ProjectContext:
    """A project with some files in its folder `data`."""
    (root / "data").mkdir(parents=True)
    for name, text in files.items():
        (root / "data" / f"{name}.csv").write_text(text)
    return ProjectContext(root=root, warehouse=str(root / "warehouse"))


def source(path: str) -> CsvSource:
    return CsvSource(path=path, incremental=True)


def read(project_ctx: ProjectContext, path: str = "data/*.csv") -> Bounds:
    """What a first batch reads, as the ledger tells it later."""
    return Bounds.from_json(source(path).bounds(project_ctx, None).to_json())


def of_older_version(bounds: Bounds) -> Bounds:
    """The same as a ledger of before has it: absolute paths, and nothing else."""
    plain = (FileStamp(s.path, s.size_bytes, s.modified_ns) for s in bounds.files)
    return replace(bounds, files=tuple(plain))


def new_names(project_ctx: ProjectContext, since: Bounds, path: str = "data/*.csv") -> list[str]:
    found = source(path).bounds(project_ctx, since)
    return [Path(stamp.path).name for stamp in found.files]


@pytest.mark.parametrize("older", [False, True], ids=["names", "paths only"])
@pytest.mark.parametrize(
    "path",
    ["./data/*.csv", "data/o*.csv", "data", "data/one.csv", "data/../data/*.csv", "*/*.csv"],
)
def test_no_spelling_of_a_pattern_makes_other_files_of_those_that_were_read(
    tmp_path: Path, path: str, *, older: bool
) -> None:
    project_ctx = project(tmp_path / "shop", one="id\n1\n")
    before = of_older_version(read(project_ctx)) if older else read(project_ctx)
    for spelled in (path, f"{project_ctx.root}/{path}"):
        now = source(spelled).bounds(project_ctx, before)
        assert (now.files, now.nothing) == ((), True)
    (project_ctx.root / "data/other.csv").write_text("id\n2\n")
    if "one" not in path:
        assert new_names(project_ctx, before, path) == ["other.csv"]


def test_a_link_to_the_folder_leads_to_the_same_files(tmp_path: Path) -> None:
    project_ctx = project(tmp_path / "shop", one="id\n1\n")
    (tmp_path / "shop/link").symlink_to("data")
    (tmp_path / "outside").symlink_to(tmp_path / "shop/data")
    for path in ("link/*.csv", f"{tmp_path}/outside/*.csv", f"{tmp_path}/outside"):
        assert source(path).bounds(project_ctx, read(project_ctx)).nothing
        assert source("data/*.csv").bounds(project_ctx, read(project_ctx, path)).nothing


@pytest.mark.parametrize("older", [False, True], ids=["names", "paths only"])
def test_a_project_that_moved_knows_what_it_has_read(tmp_path: Path, *, older: bool) -> None:
    project_ctx = project(tmp_path / "shop", one="id\n1\n", two="id\n2\n")
    before = of_older_version(read(project_ctx)) if older else read(project_ctx)
    shutil.move(tmp_path / "shop", tmp_path / "elsewhere")
    moved = replace(project_ctx, root=tmp_path / "elsewhere")
    assert new_names(moved, before) == []
    assert new_names(moved, before, "./data/o*.csv") == []
    (moved.root / "data/three.csv").write_text("id\n3\n")
    assert new_names(moved, before) == ["three.csv"]
    assert source("data/*.csv").still_there(moved, before) == ""
    here = source("data/*.csv").here(moved, before)
    assert [stamp.path for stamp in here.files] == [
        f"{moved.root}/data/one.csv",
        f"{moved.root}/data/two.csv",
    ]


@pytest.mark.parametrize("older", [False, True], ids=["names", "paths only"])
def test_a_copied_project_whose_files_have_other_times_is_told(
    tmp_path: Path, *, older: bool
) -> None:
    project_ctx = project(tmp_path / "shop", one="id\n1\n")
    os.utime(project_ctx.root / "data/one.csv", (AT, AT))
    before = of_older_version(read(project_ctx)) if older else read(project_ctx)
    shutil.copytree(tmp_path / "shop", tmp_path / "copy", copy_function=shutil.copyfile)
    shutil.rmtree(tmp_path / "shop")
    copied = replace(project_ctx, root=tmp_path / "copy")
    assert source("data/*.csv").bounds(copied, before).changed == ("data/one.csv",)


def test_a_folder_outside_the_project_that_moved_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    project_ctx = project(tmp_path / "shop")
    files = project(tmp_path / "disk1/in", a="id\n1\n", b="id\n2\n").root / "data"
    before = read(project_ctx, f"{files}/*.csv")
    assert all(stamp.name.startswith("/") for stamp in before.files)
    shutil.move(tmp_path / "disk1", tmp_path / "disk2")
    moved = tmp_path / "disk2/in/data"
    (moved / "b.csv").write_text("id\n3\n")
    assert new_names(project_ctx, before, f"{moved}/*.csv") == ["b.csv"]
    here = source(f"{moved}/*.csv").here(project_ctx, before)
    assert here.files[0].path == f"{moved}/a.csv"
    assert "is gone" in source(f"{moved}/*.csv").still_there(project_ctx, before)


def test_another_folder_beside_the_first_holds_other_files(tmp_path: Path) -> None:
    project_ctx = project(tmp_path / "shop", a="id\n1\n")
    before = read(project_ctx)
    shutil.copytree(project_ctx.root / "data", project_ctx.root / "more")
    assert new_names(project_ctx, before, "more/*.csv") == ["a.csv"]


def test_links_below_the_pattern_count_for_themselves(tmp_path: Path) -> None:
    """Folders may be columns, so that two ways to one file are two sets of rows."""
    project_ctx = project(tmp_path / "shop", a="id\n1\n")
    for day in ("1", "2"):
        (project_ctx.root / f"days/day={day}").mkdir(parents=True)
        (project_ctx.root / f"days/day={day}/a.csv").symlink_to(project_ctx.root / "data/a.csv")
    before = read(project_ctx, "days")
    assert [stamp.name for stamp in before.files] == ["days/day=1/a.csv", "days/day=2/a.csv"]
    (project_ctx.root / "days/day=3").symlink_to("day=1")
    assert len(source("days/*/*.csv").bounds(project_ctx, before).files) == 1


def test_a_file_of_the_same_size_and_time_with_another_content_is_another_one(
    tmp_path: Path,
) -> None:
    project_ctx = project(tmp_path / "shop", a="id\n1\n")
    path = project_ctx.root / "data/a.csv"
    os.utime(path, (AT, AT))
    before = read(project_ctx)
    assert source("data").still_there(project_ctx, before) == ""
    path.write_text("id\n9\n")
    os.utime(path, (AT, AT))
    assert source("data").bounds(project_ctx, before).changed == ("data/a.csv",)
    assert "has changed" in source("data").still_there(project_ctx, before)


def test_the_end_of_a_long_file_counts_as_well(tmp_path: Path) -> None:
    project_ctx = project(tmp_path / "shop", a="x" * 300_000)
    before = read(project_ctx)
    path = project_ctx.root / "data/a.csv"
    stat = path.stat()
    path.write_text("x" * 299_999 + "y")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert source("data").bounds(project_ctx, before).changed == ("data/a.csv",)
    path.chmod(0o600)
    assert "has changed" in source("data").still_there(project_ctx, before)


def test_a_file_that_was_only_touched_by_a_move_is_not_changed(tmp_path: Path) -> None:
    project_ctx = project(tmp_path / "shop", a="id\n1\n")
    before = read(project_ctx)
    (project_ctx.root / "data/a.csv").rename(project_ctx.root / "data/b")
    (project_ctx.root / "data/b").rename(project_ctx.root / "data/a.csv")
    assert source("data").bounds(project_ctx, before).nothing
    assert same_bounds({"s": before}, {"s": source("data").bounds(project_ctx, None)})


def test_what_was_passed_over_stays_so_until_it_changes(tmp_path: Path) -> None:
    project_ctx = project(tmp_path / "shop", old="id\n1\n", new="id\n2\n")
    os.utime(project_ctx.root / "data/old.csv", (AT, AT))
    start = source("data").start_at(project_ctx, "2026-01-02")
    first = source("data").bounds(project_ctx, start)
    assert [stamp.name for stamp in first.files] == ["data/new.csv"]
    on_record = read_together([(Bounds.from_json(first.to_json()), False)])
    assert on_record is not None
    assert source("data").bounds(project_ctx, on_record).nothing
    assert [s.name for s in on_record.from_the_start().files] == ["data/new.csv"]
    os.utime(project_ctx.root / "data/old.csv", (AT + DAY, AT + DAY))
    later = source("data").bounds(project_ctx, on_record)
    assert ([s.name for s in later.files], later.changed) == (["data/old.csv"], ())
    (project_ctx.root / "data/late.csv").write_text("id\n3\n")
    os.utime(project_ctx.root / "data/late.csv", (AT, AT))  # came later, whatever its time says
    assert new_names(project_ctx, on_record, "data") == ["late.csv", "old.csv"]


def test_files_of_a_batch_that_was_undone_may_come_back_once(tmp_path: Path) -> None:
    project_ctx = project(tmp_path / "shop", a="id\n1\n")
    first = read(project_ctx)
    undone = read_together([(first, True)])
    assert undone is not None
    assert source("data").bounds(project_ctx, undone).nothing
    assert undone.from_the_start().files == ()
    (project_ctx.root / "data/a.csv").write_text("id\n1\n2\n")
    second = source("data").bounds(project_ctx, undone)
    assert (len(second.files), second.changed) == (1, ())
    both = read_together([(first, True), (second, False)])
    assert both is not None
    (project_ctx.root / "data/a.csv").write_text("id\n1\n2\n3\n")
    assert source("data").bounds(project_ctx, both).changed == ("data/a.csv",)
    assert len(both.from_the_start().files) == 1


def test_bounds_of_files_are_the_same_wherever_the_project_is(tmp_path: Path) -> None:
    project_ctx = project(tmp_path / "shop", a="id\n1\n", b="id\n2\n")
    before = read(project_ctx)
    assert same_bounds({"s": of_older_version(before)}, {"s": before})
    shutil.move(tmp_path / "shop", tmp_path / "elsewhere")
    moved = replace(project_ctx, root=tmp_path / "elsewhere")
    assert same_bounds({"s": before}, {"s": read(moved)})
    assert not same_bounds({"s": before}, {"s": replace(before, files=before.files[:1])})
    assert not same_bounds({"s": before}, {"t": before})
    (moved.root / "data/a.csv").write_text("id\n7\n")
    assert not same_bounds({"s": before}, {"s": read(moved)})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    project_ctx = project(tmp_path / "shop", a="id\n1\n")

    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(StorageError, match="Permission denied"):
        ParquetSource(path="data").bounds(project_ctx, None)


def test_objects_keep_their_address_and_their_tag() -> None:
    stamp = FileStamp("s3://b/in/a.csv", 3, 1, "etag", name="s3://b/in/a.csv")
    bounds = Bounds(kind=FILES, identity="s3://b/in", files=(stamp,))
    project_ctx = ProjectContext(root=Path("/nowhere"), warehouse="/nowhere/w")
    here = CsvSource(path="s3://b/in/*.csv").here(project_ctx, bounds)
    assert (here.files, here.identity) == (bounds.files, "s3://b/in/*.csv")
