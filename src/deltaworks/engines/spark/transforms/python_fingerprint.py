"""Code of a project: which of its files a module draws on, and whether they have changed."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path


def fingerprint_of(file: Path, root: Path) -> str:
    """Another one as soon as a file, or one of the project that it imports, is edited."""
    found: dict[Path, bytes] = {}
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = path.read_bytes()
            waiting.extend(_imported(path, found[path], root))
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(f"{relpath(path, root)}:{len(found[path])}\n".encode())
        digest.update(found[path])
    return digest.hexdigest()[:32]


def module_file(root: Path, parts: tuple[str, ...]) -> Path | None:
    """The project's own file for a module; None when it has none."""
    start = root.joinpath(*parts)
    for path in (start.with_name(f"{start.name}.py"), start / "__init__.py"):
        if parts and path.is_file():
            return path.resolve()
    return None


def _imported(path: Path, text: bytes, root: Path) -> Iterator[Path]:
    """The project's files that a file's imports name, packages around them included."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # which is told, with its line, when the step runs
        return
    for node in ast.walk(tree):
        for parts in _modules(node, Path(relpath(path.parent, root)).parts):
            files = (module_file(root, parts[:n]) for n in range(1, len(parts) + 1))
            yield from (file for file in files if file is not None and file.is_relative_to(root))


def _modules(node: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """What one statement may import; a name taken from a module may be a module as well."""
    if isinstance(node, ast.Import):
        for name in node.names:
            yield tuple(name.name.split("."))
    elif isinstance(node, ast.ImportFrom):
        above = package[: len(package) - node.level + 1] if node.level else ()
        start = (*above, *(node.module.split(".") if node.module else ()))
        for name in node.names:
            yield (*start, name.name)
