"""Rows on the screen, as JSON or as CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Annotated, Any

import typer
from rich.cells import cell_len

from deltaworks.cli.output import error_line, line, print_json, print_table, print_text, stdout
from deltaworks.errors import ConfigError
from deltaworks.tables.plain_values import column_documents, plain_lists
from deltaworks.tables.rows import RowsRead

MAX_CELL = 40
"""The most characters of a value on the screen."""
_PIPED_WIDTH = 240
_DOTS = "..."
_GAP = 2

CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV on stdout, NULL as nothing.")]
LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=0, help="How many rows; 0 for all of them.")
]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Name the engine on stderr.")]


def print_rows(found: RowsRead, *, as_json: bool, as_csv: bool, verbose: bool) -> None:
    """Rows in the form that the user chose."""
    if as_json and as_csv:
        raise ConfigError("--json and --csv exclude each other")
    if verbose:
        error_line(f"read by {found.engine}")
    if as_json:
        print_json(rows_document(found))
    elif as_csv:
        _print_csv(found)
    else:
        _print_screen(found)


def rows_document(found: RowsRead) -> dict[str, Any]:
    """Rows as programs read them."""
    names = found.rows.column_names
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f'the answer has column "{name}" twice', hint="rename one of them with AS"
            )
    return {
        "engine": found.engine,
        "versions": found.versions,
        "columns": column_documents(found.rows),
        "rows": [dict(zip(names, row, strict=True)) for row in plain_lists(found.rows)],
        "more": found.more,
    }


def _print_csv(found: RowsRead) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(found.rows.column_names)
    for row in plain_lists(found.rows):
        writer.writerow(["" if value is None else _text(value) for value in row])
    print_text(text.getvalue())
    if found.more:
        error_line(f"{_count(found)}; --limit 0 gives all of them")


def _print_screen(found: RowsRead) -> None:
    columns = column_documents(found.rows)
    cells = [[_cell(value) for value in row] for row in plain_lists(found.rows)]
    shown = _fitting(columns, cells)
    headings = [f"{column['name']}\n{_cut(column['type'])}" for column in columns[:shown]]
    print_table(headings, [row[:shown] for row in cells])
    line(_count(found))
    if shown < len(columns):
        hidden = ", ".join(column["name"] for column in columns[shown:])
        line(f"{shown} of {len(columns)} columns fit here; not shown: {_cut(hidden, 120)}")
    if any(cell.endswith(_DOTS) for row in cells for cell in row):
        line(f"long values are cut after {MAX_CELL} characters; --json shows them whole")


def _count(found: RowsRead) -> str:
    count = found.rows.num_rows
    rows = "row" if count == 1 else "rows"
    return f"the first {count:,} {rows}" if found.more else f"{count:,} {rows}"


def _fitting(columns: list[dict[str, str]], cells: list[list[str]]) -> int:
    """How many columns fit side by side, at least one."""
    console = stdout()
    left = console.width if console.is_terminal else _PIPED_WIDTH
    for n, column in enumerate(columns):
        texts = (column["name"], _cut(column["type"]), *(row[n] for row in cells))
        left -= max(cell_len(text) for text in texts) + _GAP
        if left + _GAP < 0:
            return max(n, 1)
    return len(columns)


def _cell(value: Any) -> str:
    text = "NULL" if value is None else _text(value)
    return _cut("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))


def _cut(text: str, most: int = MAX_CELL) -> str:
    return text if len(text) <= most else f"{text[: most - len(_DOTS)]}{_DOTS}"


def _text(value: Any) -> str:
    """A value as SQL would show it."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)
