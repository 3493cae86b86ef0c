"""What pydantic finds, as a person reads it: place, wrong word, right word."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from deltaworks.config.interpolate import Names
from deltaworks.errors import Problem, SpecError
from deltaworks.pipeline.parse import read_pipeline

UPSERT = "table: t\nmode: upsert\nmerge_keys: id\n"
GOOD = "extract: {type: csv, path: a.csv}\n"


def problems(tmp_path: Path, text: str) -> tuple[Problem, ...]:
    file = tmp_path / "p.yaml"
    file.write_text("pipeline: p\n" + text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        read_pipeline(file, Names({}, {}))
    return caught.value.problems


def sink(tmp_path: Path, fields: str) -> Problem:
    """The only problem of a delta sink with some fields; they begin on line 5."""
    body = indent(dedent(fields), "  ")
    found = problems(tmp_path, f"{GOOD}load:\n  type: delta\n{body}")
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("fields", "line", "path", "message", "hint"),
    [
        (
            UPSERT + "duplicates:\n  kep: 1\n  by: a\n  keep: oldest\n",
            9,
            "load.duplicates.kep",
            'unknown key "kep"',
            'did you mean "keep"?',
        ),
        (
            "table: t\nmode: upsert\nmerge_keys: id\nduplicates: {keep: latest, by: ts}\n",
            8,
            "load.duplicates.keep",
            '"keep" cannot be "latest"',
            "available: newest, oldest",
        ),
        (
            "table: t\nmode: upsert\nmerge_keys: id\nduplicates: {keep: newest}\n",
            8,
            "load.duplicates",
            '"by" is missing',
            'add "by": the column that tells which row is newer',
        ),
        (
            "table: t\npartition_by:\n  - country\n  - 5\n",
            8,
            "load.partition_by[1]",
            '"partition_by" must be text, not "5"',
            'put it in quotes: "5"',
        ),
        (
            "table: t\npartition_by: {country: 1}\n",
            6,
            "load.partition_by",
            '"partition_by" must be a list, not a map',
            '"partition_by" is columns whose values become folders',
        ),
        (
            "table: t\nmerge_schema: perhaps\n",
            6,
            "load.merge_schema",
            '"merge_schema" must be true or false, not "perhaps"',
            '"merge_schema" is add columns the table does not have yet',
        ),
        (
            "table: true\n",
            5,
            "load.table",
            '"table" must be text, not "true"',
            'put it in quotes: "true"',
        ),
        ("table:\n", 5, "load.table", '"table" must be text, not nothing', "table's name"),
        (
            "table: t\nmode: overwrite\nreplace_where: a = 1) or (1 = 1\n",
            7,
            "load.replace_where",
            'closes ")" that was not opened',
            "",
        ),
        ("table: t\nmode: upsert\n", 3, "load", 'mode "upsert" needs "merge_keys"', ""),
        ("table: a__quarantine\n", 3, "load", "kept for quarantine tables", ""),
        ("table: a b\n", 3, "load", '"a b" is not a table name', ""),
        ("table: t\npath: x\n", 3, "load", 'say either "table" or "path"', ""),
    ],
)
def test_a_wrong_field_is_placed_and_mended(
    tmp_path: Path, fields: str, line: int, path: str, message: str, hint: str
) -> None:
    found = sink(tmp_path, fields)
    assert (found.line, found.path) == (line, path)
    assert message in found.message
    assert hint in found.hint


def test_keys_of_a_list_entry_get_their_own_suggestions(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        GOOD
        + "transform:\n"
        + "  - type: aggregate\n    aggregations:\n"
        + "      - {functon: count, function: count}\n"
        + "      - {function: summ, column: a}\n"
        + "load: {type: delta, table: t}\n",
    )
    assert [(p.line, p.path, p.hint) for p in found] == [
        (6, "transform[0].aggregations[0].functon", 'did you mean "function"?'),
        (7, "transform[0].aggregations[1].function", 'did you mean "sum"?'),
    ]


def test_a_key_that_python_cannot_spell_is_known_by_the_files_name(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        GOOD + "transform:\n  - {type: join, wth: a, on: id}\nload: {type: delta, table: t}\n",
    )
    assert ('unknown key "wth"', 'did you mean "with"?') in [(p.message, p.hint) for p in found]
    assert '"with" is missing' in [p.message for p in found]
