"""A small job that loads the classes pipelines use, for the archive Spark starts from."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from deltaworks.api import Project
from deltaworks.config.project import PROJECT_FILE, load_project
from deltaworks.engines.spark.java.class_archive import ARCHIVE_VARIABLE, ClassArchive
from deltaworks.engines.spark.session.start import SessionSettings, session_archive
from deltaworks.errors import EngineError

_FILES = {
    PROJECT_FILE: "project: training\nwarehouse: ./warehouse\nvars: {writer: auto}\n",
    "pipelines/orders.yaml": """\
pipeline: orders
extract: {type: csv, path: orders.csv}
transform:
  - {type: cast, columns: {id: bigint, amount: double, at: timestamp}, on_error: quarantine}
checks:
  - {type: expression, rule: "amount >= 0", on_fail: quarantine}
load:
  type: delta
  table: orders
  mode: upsert
  writer: "${var:writer}"
  merge_keys: [id]
  duplicates: {keep: newest, by: at}
""",
    "pipelines/totals.yaml": """\
pipeline: totals
extract: {type: delta, table: orders}
transform:
  - type: aggregate
    group_by: [country]
    aggregations: [{column: amount, function: sum, alias: total}]
load: {type: delta, table: totals, mode: overwrite, partition_by: [country]}
""",
}
_DAYS = (
    ("spark", "id,country,amount,at\n1,NL,1.5,2026-01-01\n2,DE,-1,2026-01-01\n"),
    ("spark", "id,country,amount,at\n1,NL,2.5,2026-01-02\n3,FR,3,2026-01-02\nx,FR,3,2026-01-02\n"),
    ("auto", "id,country,amount,at\n1,NL,3.5,2026-01-03\n"),
)
"""Who commits, and what: the classes of both ways are wanted."""


def archive_of(environ: Mapping[str, str], notify: Callable[[str], None]) -> ClassArchive:
    """The archive that sessions on this machine start from, made or not."""
    settings = SessionSettings(app_name="deltaworks training")
    return session_archive(settings, environ=environ, notify=notify)


def make_archive(environ: Mapping[str, str], notify: Callable[[str], None]) -> ClassArchive:
    """Run the job on a JVM that writes its classes down when it ends."""
    archive = archive_of(environ, notify)
    with tempfile.TemporaryDirectory(prefix="deltaworks-training-") as folder:
        root = Path(folder)
        for name, text in _FILES.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        config = load_project(root, environ={**environ, ARCHIVE_VARIABLE: "make"})
        with Project(config, notify=notify) as project:
            for writer, day in _DAYS:
                (root / "orders.csv").write_text(day, encoding="utf-8")
                for pipeline in ("orders", "totals"):
                    result = project.run(pipeline, variables={"writer": writer})
                    if result.error is not None:
                        raise result.error
    if not archive.finish():
        raise EngineError(
            f"Java wrote no archive of its classes to {archive.file.parent}",
            hint="Spark works without it and starts more slowly; "
            f"set {ARCHIVE_VARIABLE}=off to stop trying",
        )
    return archive
