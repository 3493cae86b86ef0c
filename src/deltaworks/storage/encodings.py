"""Character encodings that Spark's readers and writers know."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from deltaworks.suggest import did_you_mean

_KNOWN = ("utf-8", "iso-8859-1", "us-ascii", "utf-16", "utf-16be", "utf-16le", "utf-32")


def _known(name: str) -> str:
    if name.lower() in _KNOWN:
        return name
    raise ValueError(f'encoding "{name}" is not known; {did_you_mean(name, _KNOWN)}')


Encoding = Annotated[str, AfterValidator(_known)]
"""The name of an encoding, in any case."""


def is_wide(name: str) -> bool:
    """Whether a line break is more than one byte, so that files cannot be cut into lines."""
    return name.lower().startswith(("utf-16", "utf-32"))
