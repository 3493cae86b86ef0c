"""A plug-in is one class in one file, and the file's name is its type."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from deltaworks.contracts.registry import find_plugin, plugin_types
from tests.architecture.source_tree import PLUGIN_FOLDERS, name_of, plugin_files, tree_of

FILES = [(kind, path) for kind in PLUGIN_FOLDERS for path in plugin_files(kind)]
each_file = pytest.mark.parametrize(
    ("kind", "path"), FILES, ids=[name_of(path) for _, path in FILES]
)


@each_file
def test_the_file_holds_one_plugin_class_named_after_it(kind: str, path: Path) -> None:
    classes = [node.name for node in tree_of(path).body if isinstance(node, ast.ClassDef)]
    plugins = [name for name in classes if name.endswith(kind.title())]
    expected = path.stem.replace("_", "") + kind
    assert [name.lower() for name in plugins] == [expected]


@each_file
def test_the_file_name_is_the_type_users_write(kind: str, path: Path) -> None:
    plugin = find_plugin(kind, path.stem)
    assert plugin is not None
    assert plugin.plugin_type() == path.stem


@pytest.mark.parametrize("kind", PLUGIN_FOLDERS)
def test_the_registry_lists_every_file_and_nothing_hidden(kind: str) -> None:
    assert {path.stem for path in plugin_files(kind)} <= set(plugin_types(kind))


@pytest.mark.parametrize("kind", PLUGIN_FOLDERS)
def test_plugin_packages_import_nothing_themselves(kind: str) -> None:
    init = PLUGIN_FOLDERS[kind] / "__init__.py"
    statements = tree_of(init).body if init.exists() else []
    assert [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)] == []
