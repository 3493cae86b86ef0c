"""Folders stay small enough to be seen at a glance."""

from __future__ import annotations

from collections import Counter

from tests.architecture.source_tree import PACKAGE, modules

MAX_MODULES = 20


def test_no_folder_has_more_than_20_modules() -> None:
    inside = [path for path in modules() if path.stem != "__init__"]
    counts = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in inside)
    assert {folder: n for folder, n in counts.items() if n > MAX_MODULES} == {}


def test_every_folder_says_what_it_contains() -> None:
    folders = {path.parent for path in modules()}
    silent = [
        folder.relative_to(PACKAGE).as_posix()
        for folder in folders
        if not (folder / "__init__.py").read_text(encoding="utf-8").startswith('"""')
    ]
    assert silent == []
