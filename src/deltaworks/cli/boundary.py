"""The edge between our code and the person at the terminal: errors become messages."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from deltaworks.cli.output import error_line, print_error, print_json
from deltaworks.errors import DeltaworksError, InternalError, Interrupted
from deltaworks.log import set_up_logging
from deltaworks.model.results import error_document


@contextmanager
def answering(*, as_json: bool, debug: bool) -> Iterator[None]:
    """Whatever goes wrong inside is told shortly and ends with the documented exit code."""
    set_up_logging(debug=debug)
    try:
        yield
    except DeltaworksError as error:
        _tell(error, as_json=as_json, debug=debug)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        stop = Interrupted("stopped by Ctrl-C")
        _tell(stop, as_json=as_json, debug=debug)
        raise typer.Exit(stop.exit_code) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # noqa: BLE001 - the last of the three boundaries
        bug = InternalError(
            f"this is a bug in Deltaworks: {type(error).__name__}: {error}",
            hint="run it again with --debug and report what it prints",
        )
        bug.__cause__ = error
        _tell(bug, as_json=as_json, debug=debug)
        raise typer.Exit(bug.exit_code) from None


def _tell(error: DeltaworksError, *, as_json: bool, debug: bool) -> None:
    if debug:
        error_line("".join(traceback.format_exception(error)).rstrip())
    if as_json:
        print_json({"error": error_document(error)})
    else:
        print_error(error)
