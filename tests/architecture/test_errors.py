"""The error tree drawn in the docstring is the one the classes form."""

from __future__ import annotations

import re

from deltaworks import errors

LINE = re.compile(r"^ {4}(?P<lead>(?:│ {3}| {4})*)(?P<branch>[├└]── )?(?P<name>\w+)$")


def drawn_parents() -> dict[str, str]:
    """Child -> parent, read from the drawing; the root's parent is empty."""
    parents: dict[str, str] = {}
    ancestors: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        depth = len(match["lead"]) // 4 + (1 if match["branch"] else 0)
        del ancestors[depth:]
        parents[match["name"]] = ancestors[-1] if ancestors else ""
        ancestors.append(match["name"])
    return parents


def class_parents() -> dict[str, str]:
    """Child -> parent, read from the classes of the module."""
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    names = {cls.__name__ for cls in classes}
    return {
        cls.__name__: cls.__base__.__name__
        if cls.__base__ is not None and cls.__base__.__name__ in names
        else ""
        for cls in classes
    }


def test_the_drawing_equals_the_classes() -> None:
    assert drawn_parents() == class_parents()


def test_there_is_one_root() -> None:
    assert [name for name, parent in class_parents().items() if not parent] == ["DeltaworksError"]
