"""The parts of the documentation that the code knows best, written from it."""

from __future__ import annotations

import re
from pathlib import Path

from tools.reference.classic import spellings
from tools.reference.commands import commands_page
from tools.reference.errors import error_codes
from tools.reference.plugins import plugin_list, plugin_pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
COMMAND = "python -m tools.reference"


def written_pages() -> dict[Path, str]:
    """Pages that hold what is generated -> their text as the code is now."""
    whole = {**plugin_pages(), "commands.md": commands_page()}
    pages = {DOCS / "reference" / name: text for name, text in whole.items()}
    pages[DOCS / "classic.md"] = _filled(DOCS / "classic.md", "spellings", spellings())
    pages[DOCS / "errors.md"] = _filled(DOCS / "errors.md", "codes", error_codes())
    pages[ROOT / "README.md"] = _filled(ROOT / "README.md", "plug-ins", plugin_list())
    return pages


def _filled(path: Path, section: str, text: str) -> str:
    """A page with new text between the marks of a section."""
    page = path.read_text(encoding="utf-8")
    marks = rf"(?<=<!-- {section} -->\n).*(?=<!-- /{section} -->)"
    if re.search(marks, page, re.DOTALL) is None:
        raise ValueError(f"{path.name} has no section {section}")
    return re.sub(marks, lambda _: text, page, count=1, flags=re.DOTALL)
