"""Types and columns in the options of plug-ins: parsed when a file is read."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from deltaworks.model.type_text import parse_columns, parse_type


def _type(text: str) -> str:
    parse_type(text)
    return text


def _columns(text: str) -> str:
    parse_columns(text)
    return text


TypeText = Annotated[str, AfterValidator(_type)]
"""One SQL type, such as `decimal(12,2)`."""

SchemaText = Annotated[str, AfterValidator(_columns)]
"""Columns and their SQL types, such as `id bigint, amount double`."""
