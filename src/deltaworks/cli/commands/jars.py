"""`deltaworks jars fetch | archive`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from deltaworks.cli.boundary import answering
from deltaworks.cli.options import DebugOption, JsonOption
from deltaworks.cli.output import error_line, line, print_json

app = typer.Typer(help="The Java libraries Spark needs.", no_args_is_help=True)


@app.command("fetch")
def fetch(
    everything: Annotated[
        bool, typer.Option("--all", help="Those that only some projects need, too: S3, databases.")
    ] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Download and verify the jars, so that later runs need no network."""
    from deltaworks.config.cache import cache_dir
    from deltaworks.doctor import fetch_jars

    with answering(as_json=as_json, debug=debug):
        paths = fetch_jars(os.environ, notify=error_line, everything=everything)
        if as_json:
            print_json({"jars": [str(path) for path in paths]})
        else:
            line(f"{len(paths)} jars are ready in {cache_dir(os.environ)}")


@app.command("archive")
def archive(
    force: Annotated[bool, typer.Option("--force", help="Recreate it if it exists.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Keep the classes Spark loads in an archive, from which it starts sooner."""
    from deltaworks.cli.archive_job import archive_of, make_archive

    with answering(as_json=as_json, debug=debug):
        found = archive_of(os.environ, error_line)
        if force or not found.ready:
            error_line("running a small job to see which classes Spark needs, about a minute")
            found = make_archive(os.environ, error_line)
        size = found.file.stat().st_size
        if as_json:
            print_json({"archive": str(found.file), "bytes": size})
        else:
            line(f"Spark starts from {found.file} ({size / 1e6:.0f} MB)")
