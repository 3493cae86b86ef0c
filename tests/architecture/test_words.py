"""Messages use the words of docs/glossary.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.architecture.source_tree import modules, name_of, tree_of

INSTEAD = {
    r"\bmoments?\b": "timestamp, time",
    r"\banew\b": "again, recreated, reload",
    r"\bset(s|ting)? aside\b": "quarantined",
    r"\b(is|are) wanted\b": "expected ...",
    r"\bthere (is|are): ": "available: ",
    r"\btakes no NULL\b": "does not allow NULL",
    r"\blooked? after\b": "maintenance",
    r"\bnot said\b": "not set",
}


def prose(tree: ast.AST) -> Iterator[ast.expr]:
    """Strings that are expressions of their own: docstrings, and those of fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            yield node.value


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text that may reach a user, with its line."""
    skipped = {id(node) for node in prose(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in skipped:
            yield node.lineno, node.value if isinstance(node.value, str) else ""


@cache
def all_messages() -> list[tuple[str, str]]:
    """The messages of the package, each with its place."""
    return [
        (f"{name_of(path)}:{line}", text)
        for path in modules()
        for line, text in messages(tree_of(path))
        if text
    ]


@pytest.mark.parametrize("pattern", INSTEAD)
def test_messages_use_the_words_of_the_glossary(pattern: str) -> None:
    found = [f"{place}: {text!r}" for place, text in all_messages() if re.search(pattern, text)]
    assert found == [], f"say: {INSTEAD[pattern]}"


def test_messages_are_found_and_docstrings_are_not() -> None:
    tree = ast.parse('"""moment"""\nraise ValueError(f"{x} is not a moment")')
    assert [text for _, text in messages(tree)] == [" is not a moment"]
