"""A small project on disk, and the command line run in this process on the shared JVM."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltaworks.api import Project
from deltaworks.cli.app import answer


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.stdout)


def run_cli(*arguments: str) -> Answer:
    """Run `deltaworks` with these arguments, as the console script would."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = answer(list(arguments))
    return Answer(code, out.getvalue(), err.getvalue())


class Workbench:
    """A project folder to write files into and run pipelines from."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("deltaworks.yaml", "project: shop\nwarehouse: ./warehouse\n")

    def write(self, name: str, text: str) -> Path:
        """Put a file into the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def pipeline(self, name: str, text: str) -> Path:
        """Put a pipeline file into the project; its name is added."""
        return self.write(f"pipelines/{name}.yaml", f"pipeline: {name}\n{text}")

    def open(self, **options: Any) -> Project:
        """The project, freshly read."""
        return Project.open(self.root, **options)

    def cli(self, *arguments: str) -> Answer:
        """Run `deltaworks` on this project."""
        return run_cli(*arguments, "--project", str(self.root))

    def run(self, name: str, *arguments: str) -> Any:
        """Run a pipeline that must succeed; its JSON document."""
        answered = self.cli("run", name, "--json", "--quiet", *arguments)
        assert answered.code == 0, answered.stdout + answered.stderr
        return answered.json

    def fail(self, name: str, *arguments: str) -> Answer:
        """Run a pipeline that must not succeed."""
        answered = self.cli("run", name, "--quiet", *arguments)
        assert answered.code != 0, answered.stdout
        return answered

    def table(self, name: str) -> Path:
        """The folder of a table."""
        return self.root / "warehouse" / name

    def rows(self, name: str) -> list[dict[str, Any]]:
        """All rows of a table, read by delta-rs, not by the code under test; sorted."""
        import pyarrow as pa
        from deltalake import DeltaTable, QueryBuilder

        table = DeltaTable(str(self.table(name)))
        found = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
        return sorted(pa.table(found).to_pylist(), key=lambda row: json.dumps(row, default=str))

    def version(self, name: str) -> int | None:
        """The latest version of a table; None when there is no table."""
        from deltalake import DeltaTable

        path = str(self.table(name))
        return DeltaTable(path).version() if DeltaTable.is_deltatable(path) else None
