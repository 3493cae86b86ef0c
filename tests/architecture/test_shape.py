"""Names, return types and exception boundaries hold everywhere in the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.source_tree import PACKAGE, functions, modules, name_of, tree_of

NAMELESS = {"utils", "util", "helpers", "helper", "common", "base", "core", "definitions", "misc"}
CATCH_ALL = {"Exception", "BaseException"}
BOUNDARIES = {
    "src/deltaworks/runtime/error_boundary.py",  # a user's own code
    "src/deltaworks/observe/bus.py",  # an observer
    "src/deltaworks/cli/boundary.py",  # the command line
}
HEAVY = {"pyspark", "pyarrow", "delta", "deltalake", "pandas", "numpy", "py4j"}


def test_every_file_and_folder_is_named_after_a_thing() -> None:
    places = [path.relative_to(PACKAGE) for path in modules()]
    assert [str(p) for p in places if NAMELESS & {*p.parts[:-1], p.stem}] == []


def test_every_function_says_what_it_returns() -> None:
    assert [place for place, function in functions() if function.returns is None] == []


def cleans_up(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only tidies on the way out: `except BaseException: ...; raise`."""
    last = handler.body[-1]
    everything = handler.type is not None and ast.unparse(handler.type) == "BaseException"
    return everything and isinstance(last, ast.Raise) and last.exc is None


def caught_names(node: ast.AST) -> Iterator[str]:
    """The exceptions a handler or a `suppress` call names; a bare except catches all."""
    caught: list[ast.expr] = []
    if isinstance(node, ast.ExceptHandler) and not cleans_up(node):
        if node.type is None:
            yield "BaseException"
        else:
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
        caught = node.args
    yield from (ast.unparse(expression).rpartition(".")[2] for expression in caught)


def test_everything_is_caught_at_the_three_boundaries_only() -> None:
    places = [
        f"{name_of(path)}:{getattr(node, 'lineno', 0)}"
        for path in modules()
        if name_of(path) not in BOUNDARIES
        for node in ast.walk(tree_of(path))
        if CATCH_ALL & set(caught_names(node))
    ]
    assert places == []


def module_level(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """What runs on import: not function bodies, not what only the type checker reads."""
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            yield from module_level(statement.orelse)
            continue
        yield statement
        for field in ("body", "orelse", "finalbody"):
            yield from module_level(getattr(statement, field, []))


def imported_roots(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Import):
        return {alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom) and statement.module:
        return {statement.module.partition(".")[0]}
    return set()


def test_only_engines_import_heavy_libraries_when_they_are_imported() -> None:
    places = [
        f"{name_of(path)}:{statement.lineno}"
        for path in modules()
        if path.relative_to(PACKAGE).parts[0] != "engines"
        for statement in module_level(tree_of(path).body)
        if HEAVY & imported_roots(statement)
    ]
    assert places == []
