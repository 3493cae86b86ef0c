"""A table of error codes, from the error classes."""

from __future__ import annotations

from deltaworks import errors


def error_codes() -> str:
    """Every code with its exit code, its cause and what to do."""
    rows = "\n| code | exit | cause | what to do |\n|---|---|---|---|\n"
    for error in error_classes():
        cause = " ".join((error.__doc__ or "").split())
        rows += f"| `{error.code}` | {error.exit_code} | {cause} | {error.remedy} |\n"
    return rows + "\n"


def error_classes() -> list[type[errors.DeltaworksError]]:
    """All error classes, as their module has them."""
    return [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.DeltaworksError)
    ]
