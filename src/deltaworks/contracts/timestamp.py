"""Moments as people write them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from deltaworks.clock import parse_timestamp


def _checked(text: str) -> str:
    parse_timestamp(text)
    return text


Moment = Annotated[str, AfterValidator(_checked)]
"""A timestamp, such as `2026-01-31T12:00:00Z`."""
