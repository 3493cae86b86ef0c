"""`deltaworks init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from deltaworks.cli.boundary import answering
from deltaworks.cli.commands.schema import schema_text
from deltaworks.cli.options import DebugOption, JsonOption
from deltaworks.cli.output import line, print_json
from deltaworks.config.project import PROJECT_FILE
from deltaworks.errors import ConfigError, StorageError

_PROJECT = """\
project: {name}
id: {project_id}
warehouse: ./warehouse
vars: {{day: "2026-01-01"}}
"""

_SCHEMA = "pipeline.schema.json"
_PIPELINE = """\
# yaml-language-server: $schema=../pipeline.schema.json
pipeline: orders
description: Orders of one day, newest version of each.

extract: {type: csv, path: "data/orders_${var:day}.csv"}

transform:
  - name: typed
    type: cast
    columns: {order_id: bigint, amount: double, updated_at: timestamp}
    on_error: quarantine

checks:
  - {type: expression, rule: "amount >= 0", on_fail: quarantine}

load:
  type: delta
  table: orders
  mode: upsert
  merge_keys: [order_id]
  update_condition: source.updated_at > target.updated_at
  duplicates: {keep: newest, by: updated_at}
"""

_DATA = """\
order_id,customer,amount,updated_at
1,ada,10.50,2026-01-01 09:00:00
2,bob,20.00,2026-01-01 09:05:00
3,cyd,oops,2026-01-01 09:10:00
4,dee,-1.00,2026-01-01 09:15:00
2,bob,22.00,2026-01-01 10:05:00
"""

_TEST = """\
pipeline: orders
tests:
  - name: the newest version of an order wins
    given:
      - {order_id: 1, customer: ada, amount: 10.5, updated_at: "2026-01-01 09:00:00"}
      - {order_id: 1, customer: ada, amount: 12.0, updated_at: "2026-01-01 10:00:00"}
    expect:
      - {order_id: 1, amount: 12}
  - name: a row without an amount is quarantined
    given:
      - {order_id: 2, customer: bob, amount: oops, updated_at: "2026-01-01 09:00:00"}
      - {order_id: 3, customer: cyd, amount: -1, updated_at: "2026-01-01 09:00:00"}
    expect: []
    expect_quarantined: 2
"""


def init(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where the project goes.")] = ".",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a small project that runs."""
    with answering(as_json=as_json, debug=debug):
        root = Path(folder).expanduser().absolute()
        files = _files(root)
        present = [name for name in files if (root / name).exists()]
        if present:
            raise ConfigError(
                f'"{root / present[0]}" exists already', hint="choose an empty folder"
            )
        _write(root, files)
        if as_json:
            print_json({"folder": str(root), "files": list(files)})
            return
        line(f"wrote {', '.join(files)}")
        line(f"try: deltaworks run orders --project {folder}")


def _files(root: Path) -> dict[str, str]:
    from deltaworks.pipeline.json_schema import pipeline_schema

    name = "".join(c if c.isalnum() or c in "_-" else "_" for c in root.name) or "project"
    return {
        PROJECT_FILE: _PROJECT.format(name=name, project_id=uuid4().hex),
        "pipelines/orders.yaml": _PIPELINE,
        "data/orders_2026-01-01.csv": _DATA,
        _SCHEMA: schema_text(pipeline_schema()),
        "tests/orders.yaml": _TEST,
    }


def _write(root: Path, files: dict[str, str]) -> None:
    try:
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise StorageError(f'"{root}" cannot be written: {problem.strerror}') from problem
