"""Of the files in an export folder, only those we wrote are ever removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deltaworks.engines.spark.write.folder_local import LocalFolder
from deltaworks.errors import InputError
from deltaworks.model.commit import Txn
from deltaworks.storage.folder_manifest import MANIFEST, is_ours

SPARKS = "part-00000-5d0f3a7e-1c2b-4a5d-9e8f-001122334455-c000.csv"
MARKED = f"batch00000001-0123abcd-{SPARKS}"
OURS = {"id": "x", "writers": {"w": 1}, "files": [f"day=mon/{SPARKS}"]}
OLDER = {"id": "x", "writers": {"w": 1}}


@pytest.mark.parametrize(
    ("path", "ours", "older"),
    [
        (f"day=mon/{SPARKS}", True, True),
        (f"day=mon/.{SPARKS}.crc", True, True),
        (f"day=tue/{SPARKS}", False, True),
        (MARKED, True, True),
        (f"day=mon/{MARKED}", True, True),
        (f"batch00000001-0123abcd-{SPARKS} (copy)", False, False),
        ("batch00000001-0123abcd-notes.csv", False, False),
        (MANIFEST, True, True),
        ("_SUCCESS", True, True),
        ("day=mon/_SUCCESS", False, False),
        ("README.txt", False, False),
        (".gitkeep", False, False),
    ],
)
def test_a_file_is_ours_when_the_manifest_or_its_batch_names_it(
    path: str, *, ours: bool, older: bool
) -> None:
    """An older manifest names no files: all that Spark names so is taken for ours."""
    assert (is_ours(path, OURS), is_ours(path, OLDER)) == (ours, older)


def folder(tmp_path: Path) -> LocalFolder:
    here = tmp_path / "out"
    here.mkdir()
    (here / SPARKS).write_text("old")
    (here / MANIFEST).write_text(json.dumps({**OURS, "files": [SPARKS]}))
    staging = tmp_path / ".out.deltaworks-staging"
    staging.mkdir()
    (staging / SPARKS).write_text("new")
    return LocalFolder(str(here), file_format="csv", options={})


def contents(place: Path) -> dict[str, str]:
    return {
        path.relative_to(place).as_posix(): path.read_text()
        for path in place.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }


def test_a_foreign_file_is_named_and_nothing_is_replaced(tmp_path: Path) -> None:
    out = folder(tmp_path)
    out.refuse_foreign(out.manifest(), replace=True)
    (tmp_path / "out" / ".hidden").write_text("passed over by readers")
    out.refuse_foreign(out.manifest(), replace=True)
    (tmp_path / "out" / "elsewhere").symlink_to(tmp_path)
    with pytest.raises(InputError, match='did not write, such as "elsewhere"'):
        out.refuse_foreign(out.manifest(), replace=True)
    out.refuse_foreign(out.manifest(), replace=False)


def test_files_that_others_put_in_meanwhile_move_on_with_the_folder(tmp_path: Path) -> None:
    out = folder(tmp_path)
    (tmp_path / "out" / "notes").mkdir()
    (tmp_path / "out" / "notes" / "late.txt").write_text("theirs")
    (tmp_path / "out" / ".gitkeep").write_text("")
    out.swap(Txn("w", 2), {**OURS, "writers": {"w": 2}})
    assert contents(tmp_path) == {
        f"out/{SPARKS}": "new",
        "out/notes/late.txt": "theirs",
        "out/.gitkeep": "",
    }
    assert out.manifest()["files"] == [SPARKS]


def test_what_a_swap_cut_in_two_replaced_is_removed_without_files_of_others(
    tmp_path: Path,
) -> None:
    out = folder(tmp_path)
    (tmp_path / "out").rename(tmp_path / ".out.deltaworks-old")
    old = tmp_path / ".out.deltaworks-old"
    (old / "theirs.txt").write_text("first")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs.txt").write_text("second")
    out.recover()
    assert contents(tmp_path / "out") == {"theirs.txt": "second"}
    assert contents(old) == {"theirs.txt": "first"}
    (old / "theirs.txt").unlink()
    out.recover()
    assert not old.exists()


def test_what_was_replaced_is_removed_with_its_manifest_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off in between, the rest must still be known as ours, or old rows would come back."""
    out = folder(tmp_path)
    old = (tmp_path / "out").rename(tmp_path / ".out.deltaworks-old")
    (tmp_path / "out").mkdir()
    removed: list[str] = []
    real = Path.unlink

    def unlink(path: Path, *, missing_ok: bool = False) -> None:
        removed.append(path.name)
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    out.recover()
    assert removed == [SPARKS, MANIFEST]
    assert contents(tmp_path / "out") == {}
    assert not old.exists()


def test_a_lock_that_was_let_go_is_no_file_of_others(tmp_path: Path) -> None:
    here = tmp_path / "out"
    here.mkdir()
    (here / ".inner.lock").write_text("")
    out = LocalFolder(str(here), file_format="csv", options={})
    out.refuse_foreign(out.manifest(), replace=True)
    (here / "theirs.csv").write_text("")
    with pytest.raises(InputError, match="did not write"):
        out.refuse_foreign(out.manifest(), replace=True)
