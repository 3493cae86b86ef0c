"""A function of the project as its file defines it: parsed, and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from deltaworks.errors import Problem
from deltaworks.suggest import did_you_mean

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_DYNAMIC = ("globals", "exec", "setattr", "vars")
"""Calls by which a module may get names that its text does not show."""


def source_problem(file: Path, shown: str, name: str, *, most: int) -> Problem | None:
    """Why a function of a file cannot be called with up to so many arguments; None when it can.

    A problem of the file has its place; that it lacks the function is a problem of the caller.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:  # the second one for a NUL, in older releases
        return Problem(
            code="python",
            message=f"this is not valid Python: {getattr(error, 'msg', error)}",
            hint="correct it here or on the line above",
            file=shown,
            line=getattr(error, "lineno", None) or 1,
            column=getattr(error, "offset", None) or 0,
        )
    bound = list(_bound(tree))
    found = [node for word, node in bound if word == name]
    if not found and not _is_dynamic(tree):
        choices = [word for word, node in bound if isinstance(node, _Function)]
        message, hint = f'{shown} has no function "{name}"', did_you_mean(name, choices)
        return Problem(code="python", message=message, hint=hint)
    only = found[0] if len(found) == 1 else None
    if not isinstance(only, _Function) or only.decorator_list:
        return None  # what it takes is known when it is there
    return _arguments_problem(only, shown, most=most)


def _arguments_problem(function: _Function, shown: str, *, most: int) -> Problem | None:
    taken = [*function.args.posonlyargs, *function.args.args]
    needed = len(taken) - len(function.args.defaults)
    if taken and needed <= most:
        return None
    return Problem(
        code="python",
        message=f"function {function.name} takes {needed} arguments",
        hint=f"write it as {function.name}{'(row)' if most == 1 else '(df) or (df, ctx)'}",
        file=shown,
        line=function.lineno,
    )


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that a module gives to something, in all its branches."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child.name, child
        elif isinstance(child, ast.alias):
            yield (child.asname or child.name).partition(".")[0], child
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id, child
        if not isinstance(child, _SCOPES):
            yield from _bound(child)


def _is_dynamic(tree: ast.Module) -> bool:
    """Whether a module may have names that its text does not show."""
    words = {word for word, _ in _bound(tree)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return not words.isdisjoint(("*", "__getattr__")) or not used.isdisjoint(_DYNAMIC)
