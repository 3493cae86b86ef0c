"""`deltaworks jars fetch`."""

from __future__ import annotations

import os

import typer

from deltaworks.cli.boundary import answering
from deltaworks.cli.options import DebugOption, JsonOption
from deltaworks.cli.output import error_line, line, print_json

app = typer.Typer(help="The Java libraries Spark needs.", no_args_is_help=True)


@app.command("fetch")
def fetch(as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """Download and verify the jars, so that later runs need no network."""
    from deltaworks.config.cache import cache_dir
    from deltaworks.doctor import fetch_jars

    with answering(as_json=as_json, debug=debug):
        paths = fetch_jars(os.environ, notify=error_line)
        if as_json:
            print_json({"jars": [str(path) for path in paths]})
        else:
            line(f"{len(paths)} jars are ready in {cache_dir(os.environ)}")
