"""`deltaworks convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.options import DebugOption, JsonOption, ProjectOption, project_folder
from deltaworks.cli.output import line, print_json, print_text
from deltaworks.config.documents import shown_path
from deltaworks.errors import ConfigError, StorageError


def convert(
    target: Annotated[str, typer.Argument(metavar="FILE|NAME", help="The pipeline.")],
    write: Annotated[
        bool, typer.Option("--write", help="Write it beside the file, as a .yaml of its name.")
    ] = False,
    project: ProjectOption = ".",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print a pipeline file, classic ones too, in the native form."""
    from deltaworks.pipeline.classic.to_yaml import native_text

    with answering(as_json=as_json, debug=debug):
        opened = Project.open(project_folder(project, target))
        source = opened.file(target)
        document = opened.convert(target)
        if not write:
            if as_json:
                print_json(document)
            else:
                print_text(native_text(document))
            return
        path = source.with_suffix(".yaml")
        _write_new(path, native_text(document))
        if as_json:
            print_json({"file": str(path)})
            return
        line(f"wrote {shown_path(path)}")
        line(f"remove {shown_path(source)}: a project may have a pipeline only once")


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        hint = "print it instead, without --write"
        raise ConfigError(f'"{shown_path(path)}" exists already', hint=hint) from None
    except OSError as problem:
        message = f'"{shown_path(path)}" cannot be written: {problem.strerror}'
        raise StorageError(message) from problem
