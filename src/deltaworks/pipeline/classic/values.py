"""What the texts in a classic file stand for: flags, numbers, names, and JSON within JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from deltaworks.pipeline.classic.names import Shape
from deltaworks.suggest import did_you_mean

_FLAGS = {"true": True, "false": False}
_INTEGER = re.compile(r"[-+]?\d+")
_FLOAT = re.compile(r"[-+]?\d*\.\d+|[-+]?\d+\.\d*")
_LISTED_WORDS = re.compile(r"\w+(\s*,\s*\w+)+")
_SCHEMA_NAME = re.compile(r"[\w.\-]+")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_WRITTEN = {"names": '["a", "b"]', "json": "[{...}] or {...}", "any": '["a", "b"] or {...}'}
SCHEMA_FOLDER = "schemas"


class WrongText(ValueError):
    """A text that stands for nothing; with what would."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def meant(value: Any, shape: Shape) -> Any:
    """The value a parameter's text stands for; what is no text is taken as it is.

    A flag or number that cannot be read stays a text: the plug-in says what is wrong with it.
    """
    if not isinstance(value, str):
        return _plain(value, shape)
    text = value.strip()
    if shape == "flag":
        return _FLAGS.get(text.lower(), value)
    if shape == "number":
        return _number(text, value)
    if shape == "names":
        return _names(text)
    is_json = shape == "json" or (shape == "any" and text.startswith(("[", "{")))
    return _json(text, shape) if is_json else value


def _plain(value: Any, shape: Shape) -> Any:
    """Booleans and numbers that were written without quotes."""
    if shape not in ("text", "names") or not isinstance(value, bool | int | float):
        return value
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return [text] if shape == "names" else text


def _number(text: str, value: str) -> Any:
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else value


def _names(text: str) -> list[Any]:
    if text.startswith("["):
        found: list[Any] = _json(text, "names")
        return found
    if _LISTED_WORDS.fullmatch(text):
        listed = json.dumps([word.strip() for word in text.split(",")])
        raise WrongText(f'"{text}" is not a name', f"several names are a JSON list: {listed}")
    return [text] if text else []


def _json(text: str, shape: Shape) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        where = f"at character {problem.pos + 1}"
        message = f"its text is not valid JSON {where}: {problem.msg.lower()}"
        raise WrongText(message, f"write {_WRITTEN[shape]}, its quotes escaped") from None


def schema_text(text: str, root: Path) -> str:
    """The columns a `schemaName` stands for: itself, or what a file of the project says."""
    name = text.strip()
    if not _SCHEMA_NAME.fullmatch(name):
        return _columns(name)
    folder = root / SCHEMA_FOLDER
    try:
        return _columns((folder / f"{name}.sql").read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        known = sorted(path.stem for path in folder.glob("*.sql"))
        hint = did_you_mean(name, known) or "write it, or the columns: id bigint, amount double"
        raise WrongText(f'there is no file "{SCHEMA_FOLDER}/{name}.sql"', hint) from None
    except (OSError, UnicodeDecodeError):
        raise WrongText(f'file "{SCHEMA_FOLDER}/{name}.sql" cannot be read') from None


def _columns(text: str) -> str:
    columns = " ".join(_COMMENT.sub(" ", text).split()).removesuffix(";").rstrip()
    if not columns or columns.lower().startswith("create "):
        raise WrongText("expected columns and their types", "write: id bigint, amount double")
    return columns
