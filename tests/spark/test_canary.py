"""A planted secret is searched for in all that a project leaves, whatever goes wrong (P10)."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
from html import escape
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from tests.workbench import Workbench

pytestmark = pytest.mark.spark

CANARY = 'c4n@ry+/"77 zz'
MASKED = "***"
ENVIRONMENT = {"CANARY_TOKEN": CANARY, "DELTAWORKS_KEY": "k3y-of-the-file!"}
PROJECT = """
project: shop
warehouse: ./warehouse
engine:
  master: local[2]
  conf:
    spark.eventLog.enabled: true
    spark.eventLog.dir: EVENTS
    spark.ui.enabled: true
    spark.ui.port: 0
    spark.hadoop.fs.s3a.secret.key: ${env:CANARY_TOKEN}
    spark.hadoop.harmless.name: "kept-${env:CANARY_TOKEN}"
"""
EXTRACT = "extract: {type: csv, path: in.csv, schema: 'id int, name string'}\n"
LOAD = "load: {type: delta, table: TABLE}\n"
SALTED = """
transform: [{type: derive, columns: {hash: "sha2(concat(name, '${env:CANARY_TOKEN}'), 256)"}}]
"""
WRONG_COLUMN = SALTED.replace("concat(name", "concat(nome")
WRONG_CAST = SALTED.replace("sha2(concat(name, '", "cast(concat(name, '").replace(
    "'), 256)", "') as int)"
)
RAISES = "transform: [{type: python, function: 'steps.py:leaky', row: true, schema: 'id int'}]"
PYTHON = """
import os, sys
from urllib.parse import quote

def leaky(row):
    secret = os.environ["CANARY_TOKEN"]
    print("printed", secret, file=sys.stderr, flush=True)
    raise ValueError(f"no luck with {secret} and {quote(secret)}")
"""
PROGRAM = """
import json, sys
from pathlib import Path
from urllib.request import urlopen

from pyspark import SparkContext
from tests.workbench import run_cli

for number, line in enumerate(json.loads(sys.argv[1])):
    answer = run_cli(*line)
    print("command", number, line[0], answer.code, flush=True)
    print(answer.stdout, answer.stderr, sep="\\n", flush=True)

context = SparkContext._active_spark_context
rest = f"api/v1/applications/{context.applicationId}"
for page in ["environment/", "executors/", f"{rest}/environment", f"{rest}/allexecutors"]:
    with urlopen(f"{context.uiWebUrl}/{page}") as reply:
        text = reply.read()
    Path(sys.argv[2], page.strip("/").replace("/", "-") + ".page").write_bytes(text)
"""
COMMANDS = [
    ["run", "good"],
    ["plan", "good"],
    ["plan", "good", "--json"],
    ["validate"],
    ["run", "wrong_column", "--debug"],
    ["run", "wrong_cast", "--debug"],
    ["run", "raises", "--json"],
    ["run", "raises", "--debug"],
    ["run", "good", "--again", "--batch-id", CANARY],
    ["runs", "list", "--json"],
    ["secrets", "test", "lake", "--json"],
    ["secrets", "test", "lakes", "--debug"],
    ["secrets", "set", "lake", f"password={CANARY}"],
]


def forms() -> list[bytes]:
    """The canary as files, URLs, JSON and headers spell it."""
    raw = CANARY.encode()
    encoded = [base64.b64encode(b"\0" * n + raw)[n * 2 : -4] for n in range(3)]
    spelled = [CANARY, quote(CANARY), quote(CANARY, safe=""), json.dumps(CANARY)[1:-1]]
    spelled += [escape(CANARY), re.escape(CANARY), json.dumps(re.escape(CANARY))[1:-1]]
    return [raw, *encoded, *(text.encode() for text in spelled)]


def leaks(content: bytes) -> bool:
    return any(form in content for form in forms())


def watch(process: subprocess.Popen[bytes], seen: set[str]) -> None:
    """Note the command line of everything that runs below a process."""
    while process.poll() is None:
        for child in psutil.Process(process.pid).children(recursive=True):
            try:
                seen.add(" ".join(child.cmdline()))
            except psutil.Error:
                continue
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, set[str]]:
    """A project after good and bad runs: its folder, what was said, and every command line."""
    root = tmp_path_factory.mktemp("canary")
    desk = Workbench(root)
    desk.write("deltaworks.yaml", PROJECT.replace("EVENTS", (root / "events").as_uri()))
    desk.write("in.csv", "id,name\n1,a\n2,b\n")
    desk.write("steps.py", PYTHON)
    for name, step in {
        "good": SALTED,
        "wrong_column": WRONG_COLUMN,
        "wrong_cast": WRONG_CAST,
        "raises": RAISES,
    }.items():
        desk.pipeline(name, f"{EXTRACT}{step}\n{LOAD.replace('TABLE', name)}")
    environ = {**os.environ, **ENVIRONMENT}
    stored = [sys.executable, "-m", "deltaworks", "secrets", "set", "lake"]
    stored += ["--from-env", "secret_key=CANARY_TOKEN", "--project", str(root)]
    subprocess.run(stored, env=environ, check=True, capture_output=True)
    lines = [[*line, "--project", str(root)] for line in COMMANDS]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(lines), str(root)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=Path(__file__).parents[2],
    )
    seen: set[str] = set()
    watcher = threading.Thread(target=watch, args=(process, seen))
    watcher.start()
    said = process.communicate(timeout=600)[0].decode()
    watcher.join()
    return root, said, seen


def test_the_runs_went_as_they_should(left: tuple[Path, str, set[str]]) -> None:
    _, said, seen = left
    assert said.count("batch 1: 2 rows read") == 1, said
    assert "nome" in said
    assert "no luck with ***" in said
    assert "Traceback" in said
    assert "the ledger would keep it" in said
    assert '"secret_key"' in said
    assert any("org.apache.spark.deploy.SparkSubmit" in line for line in seen)


def test_nothing_that_was_said_holds_it(left: tuple[Path, str, set[str]]) -> None:
    _, said, _ = left
    assert not leaks(said.encode())


def test_no_command_line_of_a_child_holds_it(left: tuple[Path, str, set[str]]) -> None:
    assert [line for line in left[2] if leaks(line.encode())] == []


def test_no_file_that_was_left_holds_it(left: tuple[Path, str, set[str]]) -> None:
    root = left[0]
    files = [path for path in root.rglob("*") if path.is_file()]
    assert any(path.name.startswith("spark-") for path in files)
    assert any("_delta_log" in path.parts for path in files)
    assert [str(p.relative_to(root)) for p in files if leaks(p.read_bytes())] == []


def test_sparks_log_shows_where_it_was(left: tuple[Path, str, set[str]]) -> None:
    (log,) = left[0].glob("warehouse/_deltaworks/logs/spark-*.log")
    text = log.read_text()
    assert f"no luck with {MASKED} and {MASKED}" in text
    assert f"printed {MASKED}" in text


def test_sparks_event_log_keeps_failed_tasks_and_plans_without_it(
    left: tuple[Path, str, set[str]],
) -> None:
    (log,) = left[0].glob("events/*")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    kinds = {event["Event"].rpartition(".")[2] for event in events}
    assert {"SparkListenerApplicationEnd", "SparkListenerSQLExecutionStart"} <= kinds
    text = log.read_text()
    assert f"no luck with {MASKED} and {MASKED}" in text
    assert "sha2(" in text
    (settings,) = [e["Spark Properties"] for e in events if "Spark Properties" in e]
    assert "redacted" in settings["spark.hadoop.fs.s3a.secret.key"]


def test_the_pages_of_spark_show_settings_without_it(left: tuple[Path, str, set[str]]) -> None:
    pages = {path.name: path.read_text() for path in left[0].glob("*.page")}
    assert len(pages) == 4
    (settings,) = [text for name, text in pages.items() if name.endswith("-environment.page")]
    assert "spark.hadoop.harmless.name" in settings
    assert "(redacted)" in settings
    assert [name for name, text in pages.items() if leaks(text.encode())] == []
