"""A folder of Parquet files: staged, moved into place, and never half there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.workbench import Workbench

PIPELINE = """
extract: {{type: csv, path: in.csv, schema: "id int, country string"}}
load: {{type: parquet, path: out, {options}}}
"""
FIRST = "id,country\n1,nl\n2,de\n"


def sink(bench: Workbench, options: str, name: str = "p") -> Workbench:
    bench.pipeline(name, PIPELINE.format(options=options))
    bench.write("in.csv", FIRST)
    return bench


def ids(bench: Workbench) -> list[int]:
    """What any reader of the folder sees."""
    import pyarrow.dataset as ds

    table = ds.dataset(str(bench.root / "out"), partitioning="hive").to_table()
    return sorted(table.column("id").to_pylist())


def landed(bench: Workbench) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((bench.root / "out" / "_deltaworks.json").read_text())
    return document


def hidden(bench: Workbench) -> list[str]:
    return [path.name for path in bench.root.iterdir() if "deltaworks-" in path.name]


def test_append_adds_files_and_partitions_are_folders(bench: Workbench) -> None:
    sink(bench, "mode: append, partition_by: [country]").run("p")
    bench.write("in.csv", "id,country\n3,nl\n")
    output = bench.run("p")["batches"][0]["outputs"][0]
    assert ids(bench) == [1, 2, 3]
    assert (output["rows_inserted"], output["path"]) == (1, "out")
    assert {path.parent.name for path in (bench.root / "out").rglob("*.parquet")} == {
        "country=nl",
        "country=de",
    }
    assert list(landed(bench)["writers"].values()) == [2]
    assert hidden(bench) == []


def test_what_an_abandoned_batch_left_half_moved_is_removed(bench: Workbench) -> None:
    sink(bench, "mode: append").run("p")
    whole = next((bench.root / "out").glob("batch*.parquet"))
    # a run that died while it moved batch 2 in, and whose source has changed since
    half = whole.with_name(whole.name.replace("batch00000001", "batch00000002"))
    half.write_bytes(whole.read_bytes())
    stranger = whole.with_name("batch00000009-other-part.parquet")
    stranger.write_bytes(whole.read_bytes())
    bench.write("in.csv", "id,country\n3,nl\n")
    bench.run("p")
    assert not half.exists() or half.read_bytes() != whole.read_bytes()
    assert ids(bench) == [1, 1, 2, 2, 3]  # batch 1, the stranger's file, batch 2


def test_overwrite_replaces_the_whole_folder(bench: Workbench) -> None:
    sink(bench, "mode: overwrite").run("p")
    identity = landed(bench)["id"]
    bench.write("in.csv", "id,country\n9,nl\n")
    bench.run("p")
    assert (ids(bench), landed(bench)["id"], hidden(bench)) == ([9], identity, [])


def test_error_refuses_a_folder_that_exists(bench: Workbench) -> None:
    sink(bench, "mode: error").run("p")
    failed = bench.fail("p")
    assert failed.code == 1
    assert 'folder "out" exists already' in failed.stderr
    assert ids(bench) == [1, 2]
    planned = bench.cli("plan", "p")
    assert planned.code == 1


def test_a_folder_of_somebody_elses_files_is_never_replaced(bench: Workbench) -> None:
    sink(bench, "mode: overwrite")
    precious = bench.write("out/thesis.txt", "mine")
    failed = bench.fail("p")
    assert "holds files that Deltaworks did not write" in failed.stderr
    assert precious.read_text() == "mine"
    assert hidden(bench) == []


def test_a_file_that_somebody_put_into_our_folder_is_never_replaced(bench: Workbench) -> None:
    sink(bench, "mode: overwrite").run("p")
    signed = bench.write("out/README.txt", "signed by the auditor")
    bench.write("in.csv", "id,country\n9,nl\n")
    for command in ("plan", "run"):
        refused = bench.cli(command, "p")
        assert 'did not write, such as "README.txt"' in refused.stderr
    assert signed.read_text() == "signed by the auditor"
    signed.rename(bench.root / "README.txt")
    bench.run("p")
    assert ids(bench) == [9]


def test_a_failed_overwrite_leaves_the_old_files(bench: Workbench) -> None:
    sink(bench, "mode: overwrite").run("p")
    bench.write("in.csv", "id,country\n3,nl\nfour,de\n")
    failed = bench.fail("p")
    assert '"four" is not int' in failed.stderr
    assert (ids(bench), hidden(bench)) == ([1, 2], [])


def test_a_swap_cut_in_two_is_recovered_by_the_next_run(bench: Workbench) -> None:
    sink(bench, "mode: overwrite").run("p")
    (bench.root / "out").rename(bench.root / ".out.deltaworks-old")
    planned = bench.cli("plan", "p", "--json").json["outputs"][0]
    assert planned["exists"] is True
    bench.write("in.csv", "id,country\n5,nl\n")
    bench.run("p")
    assert (ids(bench), hidden(bench)) == ([5], [])


def test_a_finished_swap_whose_old_folder_is_still_there_is_tidied(bench: Workbench) -> None:
    sink(bench, "mode: overwrite").run("p")
    shutil.copytree(bench.root / "out", bench.root / ".out.deltaworks-old")
    bench.write("in.csv", "id,country\n5,nl\n")
    bench.run("p")
    assert (ids(bench), hidden(bench)) == ([5], [])


def test_the_same_batch_lands_once(bench: Workbench) -> None:
    sink(bench, "mode: append").run("p")
    document = bench.run("p")
    assert document["status"] == "skipped"
    assert ids(bench) == [1, 2]
    bench.run("p", "--again")
    assert ids(bench) == [1, 1, 2, 2]


@pytest.mark.parametrize("blocked", ["out"])
def test_a_place_that_cannot_be_written_is_named(bench: Workbench, blocked: str) -> None:
    for mode in ("append", "overwrite"):
        sink(bench, f"mode: {mode}")
        Path(bench.root / blocked).write_text("a file is in the way")
        failed = bench.fail("p")
        assert failed.code == 1
        assert f'{blocked}" is a file, and a folder of files is written' in failed.stderr
        assert hidden(bench) == []
        assert Path(bench.root / blocked).read_text() == "a file is in the way"


def test_a_folder_that_cannot_be_made_is_told_with_the_disks_reason(bench: Workbench) -> None:
    sink(bench, "mode: append, partition_by: [country]")
    bench.write("out/country=nl", "a file where a folder has to be")
    told = bench.fail("p")
    assert told.code == 4
    assert 'out" cannot be written: File exists' in told.stderr
    assert hidden(bench) == []
