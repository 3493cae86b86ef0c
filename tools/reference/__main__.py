"""Write the generated parts of the documentation."""

from __future__ import annotations

from tools.reference import written_pages

if __name__ == "__main__":
    for path, text in written_pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
