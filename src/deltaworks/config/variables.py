"""Variables that a pipeline file declares: what each is, and what it stands for when nobody says.

A declared variable is checked once, where it is declared, and not wherever it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from deltaworks.config.documents import Document
from deltaworks.config.interpolate import Names, variables_in
from deltaworks.config.validation import problems_of
from deltaworks.errors import Problem
from deltaworks.suggest import did_you_mean

KEY = "variables"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class Variable(BaseModel):
    """One variable of a pipeline."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    type: Literal["string", "int", "number", "bool", "date", "timestamp"] = "string"
    """What its value must look like."""
    default: str | bool | int | float | None = None
    """Its value when nobody gives one; without it somebody must."""
    required: bool | None = None
    """Whether somebody must give a value; true unless there is a default."""
    description: str = ""
    """What it is for."""


def declared(document: Document, names: Names) -> tuple[Document, Names, tuple[Problem, ...]]:
    """A document without its declarations, the names with a value for each, and all problems."""
    said = document.value[KEY]
    plain = {key: item for key, item in document.value.items() if key != KEY}
    declaring = _Declaring(document, names)
    found = declaring.names_of(said, used=variables_in(plain))
    return replace(document, value=plain), found, tuple(declaring.problems)


class _Declaring:
    """Collects problems while it gives variables their values."""

    def __init__(self, document: Document, names: Names) -> None:
        self.document = document
        self.names = names
        self.problems: list[Problem] = []

    def names_of(self, said: Any, *, used: Iterable[str]) -> Names:
        """The names with those that are declared, each with a value."""
        if not isinstance(said, dict):
            hint, message = f"{KEY}: {{day: {{type: date}}}}", f'"{KEY}" must be a map of names'
            where = (KEY,)
            wrong = self.document.problem(where, code="wrong_value", message=message, hint=hint)
            self.problems.append(wrong)
            return self.names
        found = {name: self._variable(name, entry) for name, entry in said.items()}
        variables = {name: one for name, one in found.items() if one is not None}
        texts = {name: self._text(name, one) for name, one in variables.items()}
        self._refuse_undeclared(used, found)
        # what is wrong is told where it is declared, and not once more wherever it is used
        filled = {**dict.fromkeys([*found, *used], ""), **texts, **self.names.variables}
        return replace(self.names, variables=filled, declared=frozenset(variables))

    def problem(self, name: str, code: str, message: str, hint: str = "", *inside: str) -> None:
        where = (KEY, name, *inside)
        problem = self.document.problem(where, code=code, message=message, hint=hint)
        self.problems.append(problem)

    def _variable(self, name: str, entry: Any) -> Variable | None:
        if not _NAME.fullmatch(name):
            self.problem(name, "wrong_value", f'"{name}" is not a name of a variable')
            return None
        fields = {"type": entry} if isinstance(entry, str) else {} if entry is None else entry
        try:
            found = Variable.model_validate(fields)
        except ValidationError as error:
            self.problems.extend(problems_of(error, Variable, self.document, (KEY, name)))
            return None
        if found.required is not None and found.required == (found.default is not None):
            message = f'variable "{name}": a value is required, or there is a default, and not both'
            self.problem(name, "wrong_value", message, 'leave out "required"', "required")
        return found

    def _text(self, name: str, variable: Variable) -> str:
        """The value a variable has; one that is missing or does not fit is a problem."""
        if name in self.names.variables:
            text = str(self.names.variables[name])
            self._require_fit(name, variable, text, "")
            return text
        if variable.default is None:
            message = f'variable "{name}" is required and not set'
            slip = next((one for one in sorted(self.names.given) if _is_like(one, name)), "")
            told = f', not "{slip}"' if slip else ""
            self.problem(name, "missing_variable", message, f"give it: --var {name}=...{told}")
            return ""
        text = _written(variable.default)
        self._require_fit(name, variable, text, "default")
        return text

    def _require_fit(self, name: str, variable: Variable, text: str, inside: str) -> None:
        if _FITS[variable.type](text):
            return
        message = f'variable "{name}": "{text}" is not {_CALLED[variable.type]}'
        places = (inside,) if inside else ()
        self.problem(name, "wrong_variable", message, _EXAMPLES[variable.type], *places)

    def _refuse_undeclared(self, used: Iterable[str], known: Mapping[str, object]) -> None:
        """A name that the file uses is declared by it, or set by the project."""
        choices = [*known, *self.names.of_project]
        for name in used:
            if name not in choices:
                message = f'variable "{name}" is used and not declared in "{KEY}"'
                hint = did_you_mean(name, choices) or f"declare it: {KEY}: {{{name}: string}}"
                problem = self.document.problem((KEY,), code="unknown_name", message=message)
                self.problems.append(replace(problem, hint=hint))


def _is_like(given: str, name: str) -> bool:
    return given != name and did_you_mean(given, [name]).startswith("did you mean")


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except (ValueError, InvalidOperation):
            return False
        return True

    return fits


_FITS: Mapping[str, Callable[[str], bool]] = {
    "string": lambda _: True,
    "int": lambda text: re.fullmatch(r"[+-]?\d+", text) is not None,
    "number": lambda text: _reads(Decimal)(text) and Decimal(text).is_finite(),
    "bool": lambda text: text in ("true", "false"),
    "date": lambda text: len(text) == len("2026-01-31") and _reads(date.fromisoformat)(text),
    "timestamp": _reads(datetime.fromisoformat),
}
_CALLED = {
    "int": "a whole number",
    "number": "a number",
    "bool": "true or false",
    "date": "a date",
    "timestamp": "a timestamp",
}
_EXAMPLES = {
    "int": "write it as 42",
    "number": "write it as 0.25",
    "bool": "write true or false",
    "date": "write it as 2026-01-31",
    "timestamp": "write it as 2026-01-31T12:00:00Z",
}
