"""An edited function counts as a changed pipeline, and so does what it imports (B3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaworks.engines.spark.transforms.python_fingerprint import fingerprint_of
from deltaworks.errors import SpecError
from tests.workbench import Workbench

STEP = "transform: [{type: python, function: %s}]\n"
FILES = "extract: {type: csv, path: a.csv}\n%sload: {type: delta, table: t}\n"


def put(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root / "own.py"


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("x = 1", "own"),
        ("import near", "near"),
        ("import pack.inner as other", "pack__inner"),
        ("from pack import inner", "pack__inner"),
        ("from pack.inner import thing", "pack__inner"),
        ("from . import near", "near"),
        ("from .pack.inner import thing", "pack__inner"),
        ("def f():\n    import near\n", "near"),
        ("import near", "far"),  # which near imports
    ],
)
def test_an_edit_of_what_is_imported_is_an_edit(tmp_path: Path, text: str, edited: str) -> None:
    files = {"own": text, "near": "import far", "far": "", "pack__inner": "thing = 1"}
    own = put(tmp_path, **files, stranger="")
    before = fingerprint_of(own, tmp_path)
    put(tmp_path, stranger="y = 2")
    assert fingerprint_of(own, tmp_path) == before
    put(tmp_path, **{edited: f"{files[edited]}\ny = 2"})
    assert fingerprint_of(own, tmp_path) != before


def test_modules_that_import_each_other_and_what_is_no_python_are_taken(tmp_path: Path) -> None:
    own = put(tmp_path, own="import near, os, nowhere", near="import own\nfrom .. import above")
    assert fingerprint_of(own, tmp_path) == fingerprint_of(own, tmp_path)
    before = fingerprint_of(own, tmp_path)
    put(tmp_path, near="def (")
    assert fingerprint_of(own, tmp_path) != before


def test_an_edited_function_is_another_pipeline(desk: Workbench) -> None:
    def print_of(function: str) -> str:
        desk.pipeline("p", FILES % (STEP % function if function else ""))
        project = desk.open()
        return project.catalog("p").plans[0].fingerprint(project.project_ctx)

    desk.write("clean.py", "def clean(df):\n    return df\n")
    by_file, by_module = print_of("clean.py:clean"), print_of("clean:clean")
    installed = print_of("json:dumps")
    desk.write("clean.py", "def clean(df):\n    return df.limit(1)\n")
    assert print_of("clean.py:clean") != by_file
    assert print_of("clean:clean") != by_module
    assert print_of("json:dumps") == installed
    plain = desk.open().catalog("p").plans[0].pipeline
    assert print_of("json:dumps") == plain.fingerprint()


def test_a_function_that_is_not_there_is_told_before_anything_starts(desk: Workbench) -> None:
    desk.pipeline("p", FILES % (STEP % "claen.py:clean"))
    desk.write("clean.py", "def clean(df):\n    return df\n")
    project = desk.open()
    with pytest.raises(SpecError, match=r'there is no file "claen\.py"') as caught:
        project.catalog("p").plans[0].fingerprint(project.project_ctx)
    assert caught.value.line == 3
    assert "clean.py" in caught.value.hint
