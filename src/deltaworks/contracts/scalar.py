"""Single values of a pipeline file: texts, numbers, true and false."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from deltaworks.contracts.plugin import Some


def _single(value: Any) -> Any:
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError("expected one text or number")
    return value


def _ordered(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("true and false have no order")  # noqa: TRY004 - pydantic wants it
    return _single(value)


def _several(value: Any) -> Any:
    values = [value] if isinstance(value, str | int | float) else value
    for entry in values if isinstance(values, list | tuple) else ():
        if entry is None:
            raise ValueError("NULL cannot be listed; `allow_null: true` lets it pass")
        _single(entry)
    return values


Bound = Annotated[int | float | str | None, BeforeValidator(_ordered)]
"""A number, a text or a date, or none of them."""

Scalars = Annotated[tuple[bool | int | float | str, ...], BeforeValidator(_several), Some]
"""A list of at least one text, number, true or false."""
