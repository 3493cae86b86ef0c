"""The shell completes names of pipelines at once: no engine is loaded for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.workbench import Workbench

CHILD = """
import atexit, sys
heavy = {"pyspark", "py4j", "pyarrow", "delta", "deltalake", "pandas", "numpy"}
atexit.register(lambda: print("loaded", *sorted(heavy & set(sys.modules)), file=sys.stderr))
from deltaworks.cli.app import main
sys.argv = ["deltaworks", *sys.argv[1:]]
main()
"""
SPEC = "extract: {type: csv, path: a.csv}\nload: {type: delta, table: t}\n"


def child(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CHILD, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["run", "ord"], ["orders", "orders_daily"]),
        (["plan", "s"], ["stock"]),
        (["preview", ""], ["orders", "orders_daily", "stock"]),
        (["validate", "orders", "st"], ["stock"]),
        (["runs", "list", "--pipeline", "st"], ["stock"]),
        (["quarantine", "show", "st"], ["stock"]),
        (["test", "st"], ["stock"]),
    ],
    ids=" ".join,
)
def test_names_of_pipelines_complete(desk: Workbench, words: list[str], found: list[str]) -> None:
    for name in ("orders", "orders_daily", "stock"):
        desk.pipeline(name, SPEC)
    desk.write("pipelines/broken.yaml", "pipeline: [\n")
    place = len(words) - 1
    typed = ["deltaworks", *words[:place], "--project", str(desk.root), words[place]]
    if words[-2].startswith("--"):  # the value of an option stands right behind it
        typed = ["deltaworks", words[0], words[1], "--project", str(desk.root), *words[2:]]
    answer = child(
        _DELTAWORKS_COMPLETE="complete_bash",
        COMP_WORDS=" ".join(typed),
        COMP_CWORD=str(len(typed) - 1),
    )
    assert (answer.stdout.split(), answer.stderr) == (found, "loaded\n")


@pytest.mark.parametrize("words", [["rows", "or"], ["show", "or"], ["history", "or"]], ids=" ".join)
def test_names_of_tables_complete(desk: Workbench, words: list[str]) -> None:
    for name in ("orders", "silver/orders", "orders_daily", "_deltaworks/batches", "stock"):
        desk.write(f"warehouse/{name}/_delta_log/0.json", "")
    typed = ["deltaworks", "table", words[0], "--project", str(desk.root), words[1]]
    answer = child(
        _DELTAWORKS_COMPLETE="complete_bash",
        COMP_WORDS=" ".join(typed),
        COMP_CWORD=str(len(typed) - 1),
    )
    assert (answer.stdout.split(), answer.stderr) == (["orders", "orders_daily"], "loaded\n")


def test_the_script_for_the_shell_can_be_shown() -> None:
    answer = child(_DELTAWORKS_COMPLETE="source_bash")
    assert "complete -o default -F _deltaworks_completion deltaworks" in answer.stdout
