"""Screens: what a user sees, kept as texts, with only what changes from run to run replaced."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.workbench import Answer

UPDATE = "DELTAWORKS_UPDATE_GOLDEN"
SCREENS = Path(__file__).parent / "mistakes"
MAX_LINES = 6
FOREIGN = ("Traceback", "\tat ", "org.apache", "io.delta", "java.lang", "Py4J", "py4j", "SQLSTATE")
_CHANGING = (
    (r"\b\d{8}T\d{6}-[0-9a-f]{8}\b", "<run>"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", "<time>"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
    (r"\bin \d+\.\d s\b", "in <seconds> s"),
    (r"\bprocess \d+ on \S+", "process <pid> on <host>"),
)


def screen(command: str, answer: Answer, folder: Path) -> str:
    """A command, what it printed and how it ended, without anything of this run or machine."""
    text = f"$ {command}\n{answer.stdout}{answer.stderr}exit {answer.code}\n"
    for shown in sorted({str(folder.resolve()), str(folder)}, key=len, reverse=True):
        text = text.replace(shown, "<project>")
    for pattern, stand_in in _CHANGING:
        text = re.sub(pattern, stand_in, text)
    return text


def assert_screen(name: str, command: str, answer: Answer, folder: Path) -> None:
    """Compare with the kept screen; with DELTAWORKS_UPDATE_GOLDEN=1 keep this one instead."""
    text, path = screen(command, answer, folder), SCREENS / f"{name}.txt"
    if os.environ.get(UPDATE) == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == kept, f"{path.name} differs; {UPDATE}=1 keeps the new text"


def messages(text: str) -> list[list[str]]:
    """The lines of each problem: from one `error:` to the next."""
    parts = re.split(r"(?m)^(?=error: )", text)
    return [part.splitlines() for part in parts if part.startswith("error: ")]


def assert_short_and_clear(answer: Answer, *, problems: int = 1) -> None:
    """Nothing on stdout; so many problems of at most six lines; a fix; no foreign stack."""
    assert answer.stdout == ""
    told = messages(answer.stderr)
    assert len(told) == problems
    assert [lines for lines in told if len(lines) > MAX_LINES] == []
    assert [word for word in FOREIGN if word in answer.stderr] == []
    assert any("fix: " in line for lines in told for line in lines)
