"""An inbox without files has nothing new; a folder that is not there is a mistake."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deltaworks.errors import InputError
from deltaworks.storage.listing import file_bounds, found_files
from tests.workbench import Workbench

INBOX = """
extract: {type: csv, path: "%s", schema: "id int", incremental: true}
load: {type: delta, table: t}
"""


@pytest.fixture
def waiting(desk: Workbench) -> Workbench:
    (desk.root / "inbox").mkdir()
    return desk


@pytest.mark.parametrize("path", ["inbox/*.csv", "inbox", "inbox/*/day.csv"])
def test_an_empty_inbox_is_nothing_new_for_every_command(waiting: Workbench, path: str) -> None:
    waiting.pipeline("p", INBOX % path)
    ran = waiting.cli("run", "p", "--json", "--quiet")
    assert (ran.code, ran.json["status"], ran.json["error"]) == (0, "skipped", None)
    assert ran.json["notes"] == ["skipped: there is nothing to read yet"]
    planned = waiting.cli("plan", "p", "--json")
    assert (planned.code, len(planned.json["notes"])) == (0, 1)
    seen = waiting.cli("preview", "p", "--json")
    assert (seen.code, seen.json["notes"]) == (0, ["there is nothing to read yet"])
    assert waiting.cli("sources", "test", "p").code == 0
    assert waiting.version("t") is None


def test_a_stream_of_an_empty_inbox_has_no_epochs(waiting: Workbench) -> None:
    waiting.pipeline("p", INBOX % "inbox")
    answer = waiting.cli("stream", "run", "p", "--json")
    assert answer.code == 0, answer.stderr
    assert (answer.json["epochs"], answer.json["files"]) == ([], 0)


@pytest.mark.parametrize("path", ["inbx/*.csv", "inbox/day.csv", "inbx"])
def test_a_folder_or_file_that_is_not_there_is_still_a_mistake(
    waiting: Workbench, path: str
) -> None:
    waiting.pipeline("p", INBOX % path)
    answer = waiting.cli("run", "p", "--quiet")
    assert answer.code == 1
    assert path in answer.stderr


def test_who_reads_everything_wants_files(waiting: Workbench) -> None:
    waiting.pipeline("p", (INBOX % "inbox/*.csv").replace("true", "false"))
    answer = waiting.cli("run", "p", "--quiet")
    assert (answer.code, "no file matches" in answer.stderr) == (1, True)


def test_only_files_that_are_wrong_are_an_error_where_none_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "_hidden").mkdir()
    with pytest.raises(InputError, match="passes over such names"):
        file_bounds(str(tmp_path / "_hidden"), written="_hidden", may_be_empty=True)
    found = file_bounds(str(tmp_path / "*.csv"), written="*.csv", may_be_empty=True)
    assert (found.files, found_files(found)) == (
        (),
        "the folder is there, and no file is in it yet",
    )


def test_ctrl_c_is_how_a_run_that_follows_ends(waiting: Workbench) -> None:
    waiting.pipeline("p", INBOX % "inbox/*.csv")
    code = "import sys; from deltaworks.cli.app import main; sys.exit(main())"
    words = ("run", "p", "--follow", "1s", "--json", "--quiet", "--project", str(waiting.root))
    child = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not waiting.cli("runs", "list", "--json").json["runs"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert '"status": "stopped"' in out
    (run,) = waiting.cli("runs", "list", "--json").json["runs"]
    assert (run["status"], run["error"]) == ("stopped", None)
    assert "stopped by Ctrl-C" in run["notes"][-1]
