"""The project as its architecture tests see it: files, syntax trees, functions."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "deltaworks"
PLUGIN_FOLDERS = {
    "source": PACKAGE / "sources",
    "transform": PACKAGE / "transforms",
    "check": PACKAGE / "checks",
    "sink": PACKAGE / "sinks",
}

MADE = {".git", ".venv", "demo", "__pycache__", ".hypothesis", "build", "dist"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions() -> Iterator[tuple[str, Function]]:
    """Every function and method of the package with its place."""
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, Function):
                yield f"{name_of(path)}:{node.lineno} {node.name}", node


def body_lines(function: Function) -> int:
    """Lines from the first statement to the last; the docstring does not count."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or function.lineno) - body[0].lineno + 1 if body else 0


def plugin_files(kind: str) -> list[Path]:
    return [path for path in sorted(PLUGIN_FOLDERS[kind].glob("*.py")) if path.stem != "__init__"]


def project_files() -> list[Path]:
    """Files that are or would be committed: tracked, or new and not ignored."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        return _unpacked_files()
    paths = (ROOT / name for name in listing.stdout.split("\0") if name)
    return sorted(path for path in paths if path.is_file())


def _unpacked_files() -> list[Path]:
    """The same for a source archive, which has no git: all but what make made."""
    return sorted(
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not MADE & set(path.relative_to(ROOT).parts)
        and not any(part.endswith((".egg-info", "_cache")) for part in path.parts)
        and not path.name.startswith(".coverage")
    )
