"""`deltaworks schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from deltaworks.cli.boundary import answering
from deltaworks.cli.options import DebugOption, JsonOption
from deltaworks.cli.output import line, print_json
from deltaworks.config.cache import write_atomically
from deltaworks.config.documents import shown_path
from deltaworks.errors import StorageError


def schema(
    of_project: Annotated[
        bool, typer.Option("--project-file", help="That of deltaworks.yaml instead.")
    ] = False,
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="Write it there, over an older one.")
    ] = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print the JSON Schema of pipeline files, by which editors complete and check them."""
    from deltaworks.pipeline.json_schema import pipeline_schema, project_schema

    with answering(as_json=as_json, debug=debug):
        document = project_schema() if of_project else pipeline_schema()
        if not out:
            print_json(document)
            return
        path = Path(out).expanduser().absolute()
        try:
            write_atomically(path, schema_text(document).encode())
        except OSError as problem:
            message = f'"{shown_path(path)}" cannot be written: {problem.strerror}'
            raise StorageError(message) from problem
        if as_json:
            print_json({"file": str(path)})
        else:
            line(f"wrote {shown_path(path)}")


def schema_text(document: dict[str, object]) -> str:
    """A schema as a file holds it."""
    return json.dumps(document, indent=2) + "\n"
