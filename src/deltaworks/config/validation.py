"""Validation errors as problems with a line and a suggestion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from deltaworks.config.documents import Document, Where
from deltaworks.errors import Problem
from deltaworks.model.text_fault import TextFault
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_ALIKE = 0.75  # of two choices the wrong one is often the nearest: "latest" is like "oldest"
_WANTED = {
    "bool": "must be true or false",
    "int": "must be a whole number",
    "float": "must be a number",
    "string": "must be text",
    "tuple": "must be a list",
    "list": "must be a list",
    "dict": "must be a map",
    "model": "must be a map",
}
"""What pydantic wants, by the first word of its error's type, in the words of a YAML file."""


def problems_of(
    error: ValidationError, model: type[BaseModel], document: Document, where: Where
) -> tuple[Problem, ...]:
    """Every mistake pydantic found, each at its place in the file."""
    found = [_problem(detail, model, document, where) for detail in error.errors()]
    return tuple(dict.fromkeys(found))


def _problem(
    detail: ErrorDetails, model: type[BaseModel], document: Document, where: Where
) -> Problem:
    place = detail["loc"]
    full = _known_place(document, (*where, *place))
    name = document.key(full) if place else ""
    kind = detail["type"]
    if kind == "extra_forbidden":
        message, hint = _unknown(name, full, _owner(model, place[:-1]), document)
        return document.problem(full, code="unknown_key", message=message, hint=hint)
    if kind == "missing":
        described = _described(model, place)
        hint = f'add "{name}": {described}' if described else f'add "{name}"'
        return document.problem(
            full[:-1], code="missing_key", message=f'"{name}" is missing', hint=hint
        )
    label = document.key(full) or name
    if kind in ("literal_error", "enum"):
        given = document.word(str(detail["input"]))
        choices = [document.word(choice) for choice in _choices(detail)]
        return document.problem(
            full,
            code="wrong_value",
            message=f'"{label}" cannot be "{given}"',
            hint=did_you_mean(given, choices, at_least=_ALIKE),
        )
    fault = detail.get("ctx", {}).get("error")
    if isinstance(fault, TextFault) and (fault.hint or fault.at is not None):
        return document.problem(
            (*full, *fault.inside),
            code="wrong_value",
            message=_said(label, detail),
            hint=fault.hint,
            at=fault.at,
        )
    described = _described(model, place)
    hint = _in_quotes(detail) or (f'"{label}" is {described}' if described else "")
    return document.problem(full, code="wrong_value", message=_said(label, detail), hint=hint)


def _unknown(
    name: str, full: Where, owner: type[BaseModel] | None, document: Document
) -> tuple[str, str]:
    if full in document.places:  # right in its own form, and not to be had in ours
        return f'"{name}" cannot be used here in this release', "leave it out"
    known = [document.word(field) for field in field_names(owner)] if owner else []
    return f'unknown key "{name}"', did_you_mean(name, known)


def _known_place(document: Document, full: Where) -> Where:
    """Drop the parts pydantic adds for itself, such as the branch of a union."""
    kept: Where = ()
    for part in full:
        if (*kept, part) in document.lines or part == full[-1]:
            kept = (*kept, part)
    return kept


def _said(label: str, detail: ErrorDetails) -> str:
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] in ("value_error", "assertion_error"):
        return f'"{label}": {message}'
    kind = detail["type"].partition("_")[0]
    wanted = _WANTED.get(kind) or message.replace("Input should be", "must be")
    return f'"{label}" {wanted}, not {_shown(detail["input"])}'


def _in_quotes(detail: ErrorDetails) -> str:
    """The fix for a text that YAML takes for something else."""
    value = detail["input"]
    is_plain = isinstance(value, bool | int | float)
    wants_text = detail["type"] == "string_type"
    return f'put it in quotes: "{_text(value)}"' if wants_text and is_plain else ""


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    return "nothing" if value is None else f'"{_text(value)}"'


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _choices(detail: ErrorDetails) -> list[str]:
    expected = str(detail.get("ctx", {}).get("expected", ""))
    return [word.strip().strip("'") for word in expected.replace(" or ", ",").split(",")]


def field_names(model: type[BaseModel]) -> list[str]:
    """The keys a file may use for a model."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _described(model: type[BaseModel], place: tuple[int | str, ...]) -> str:
    while place and isinstance(place[-1], int):
        place = place[:-1]  # an entry of a list is described by the list
    owner = _owner(model, place[:-1])
    if owner is None or not place:
        return ""
    for name, field in owner.model_fields.items():
        if (field.alias or name) == place[-1]:
            return _mid_sentence(field.description or "")
    return ""


def _mid_sentence(text: str) -> str:
    """A description as it reads after a colon: `a file, ...`, but `SQL ...` as it is."""
    is_word = text[1:2].islower() or text[1:2] == " "
    return (text[:1].lower() + text[1:] if is_word else text).rstrip(".")


def _owner(model: type[BaseModel], place: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model a nested place belongs to."""
    in_map = False
    for part in place:
        if isinstance(part, int) or in_map:  # an entry of a list or map, under a name of the user's
            in_map = False
            continue
        field = next((f for n, f in model.model_fields.items() if part in (n, f.alias)), None)
        in_map = field is not None and get_origin(field.annotation) is dict
        nested = next(
            (
                _model_in(field.annotation)
                for name, field in model.model_fields.items()
                if part in (name, field.alias)
            ),
            None,
        )
        if nested is None:
            return None
        model = nested
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, BaseModel) else None
    return next((found for arg in get_args(annotation) if (found := _model_in(arg))), None)
