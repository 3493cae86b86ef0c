"""Readers of a folder of files while batches land in it: whole batches or nothing of them (P8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaworks.errors import InputError
from deltaworks.storage.listing import file_bounds
from tests.workbench import Workbench

PIPELINE = """
extract: {{type: csv, path: in.csv, schema: "id int, country string"}}
load: {{type: parquet, path: out, mode: {mode}, partition_by: [country]}}
"""
BATCHES = ("id,country\n1,nl\n2,de\n3,fr\n", "id,country\n4,nl\n5,de\n6,be\n")


def write(bench: Workbench, text: str) -> None:
    bench.write("in.csv", text)
    bench.run("p")


def as_our_sources_see_it(folder: Path) -> frozenset[int]:
    import pyarrow.dataset as ds

    try:
        files = [stamp.path for stamp in file_bounds(str(folder), written="out").files]
    except InputError:
        return frozenset()
    return frozenset(ds.dataset(files).to_table().column("id").to_pylist())


def as_anybody_sees_it(folder: Path) -> frozenset[int]:
    import pyarrow.dataset as ds

    if not folder.exists():
        return frozenset()
    table = ds.dataset(str(folder), partitioning="hive", format="parquet").to_table()
    return frozenset(table.column("id").to_pylist())


@pytest.mark.parametrize(
    ("mode", "look", "whole"),
    [
        ("append", as_our_sources_see_it, [set(), {1, 2, 3}, {1, 2, 3, 4, 5, 6}]),
        ("overwrite", as_anybody_sees_it, [set(), {1, 2, 3}, {4, 5, 6}]),
    ],
)
def test_a_reader_sees_whole_batches_at_every_step(
    bench: Workbench,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    look: object,
    whole: list[set[int]],
) -> None:
    bench.pipeline("p", PIPELINE.format(mode=mode))
    assert callable(look)
    seen: list[frozenset[int]] = []
    rename = Path.rename

    def watched(path: Path, target: Path) -> Path:
        moved = rename(path, target)
        seen.append(look(bench.root / "out"))
        return moved

    monkeypatch.setattr(Path, "rename", watched)
    for text in BATCHES:
        write(bench, text)
        seen.append(look(bench.root / "out"))
    assert len(seen) > len(BATCHES) + 2, "no step was watched"
    assert {frozenset(one) for one in whole} >= set(seen)
    assert seen[-1] == whole[-1]


def test_files_of_a_batch_that_never_finished_are_not_read(bench: Workbench) -> None:
    bench.pipeline("p", PIPELINE.format(mode="append"))
    write(bench, BATCHES[0])
    landed = next((bench.root / "out").rglob("batch*.parquet"))
    half = landed.with_name(landed.name.replace("batch00000001", "batch00000002"))
    half.write_bytes(landed.read_bytes())
    bench.pipeline(
        "q",
        'extract: {type: parquet, path: "out/*/*.parquet"}\nload: {type: delta, table: t}\n',
    )
    assert bench.run("q")["batches"][0]["rows_read"] == 3
    for path in (bench.root / "out").rglob("batch00000001*"):
        path.unlink()
    (bench.root / "out" / "_deltaworks.json").write_text('{"id": "x", "writers": {}}')
    assert "a batch that is not finished" in bench.fail("q").stderr
