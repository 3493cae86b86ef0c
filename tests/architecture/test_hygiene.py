"""No file of the project ties it to a registry, a machine or a place outside itself."""

from __future__ import annotations

import re

from tests.architecture.source_tree import name_of, project_files

# Written in pieces, so that this file does not name them either.
REGISTRIES = (
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("maven", "org"),
    ("maven", "apache", "org"),
    ("sonatype", "org"),
    ("anaconda", "org"),
    ("npmjs", "org"),
    ("docker", "io"),
    ("ghcr", "io"),
)
FORBIDDEN = {
    "a registry's host": "|".join(r"\.".join(parts) for parts in REGISTRIES),
    "a path of one machine": r"(?<![\w.~<])/(?:work|root|home|Users)/(?!path\b)\w",
    "a place outside the project": r"\.\./shared\b",
}
LOCKS_OF_OTHER_TOOLS = {"uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock"}


def test_no_file_names_a_registry_or_a_machine() -> None:
    found = []
    for path in project_files():
        text = path.read_bytes().decode("utf-8", errors="ignore")
        for what, pattern in FORBIDDEN.items():
            for match in re.finditer(pattern, text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{name_of(path)}:{line} names {what}: {match[0]}")
    assert found == []


def test_the_only_lock_is_the_one_make_setup_installs() -> None:
    assert [name_of(p) for p in project_files() if p.name in LOCKS_OF_OTHER_TOOLS] == []


def test_locked_packages_come_with_hashes() -> None:
    locks = [p for p in project_files() if p.parent.name == "requirements" and p.suffix == ".txt"]
    bare = [
        f"{name_of(path)}: {pin.splitlines()[0]}"
        for path in locks
        for pin in re.split(r"\n(?=\S)", path.read_text())
        if not pin.startswith("#") and pin.strip() and "--hash=sha256:" not in pin
    ]
    assert locks
    assert bare == []
