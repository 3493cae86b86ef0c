"""`validate` notes what may be meant: circles of pipelines, and tables that are not there yet."""

from __future__ import annotations

from typing import Any

from deltalake import write_deltalake

from tests.workbench import Workbench

CSV = "extract: {type: csv, path: a.csv}\n"
COPY = "extract: {type: delta, table: %s}\nload: {type: delta, table: %s}\n"


def notes(desk: Workbench, *words: str) -> list[dict[str, Any]]:
    answer = desk.cli("validate", *words, "--json")
    assert (answer.code, answer.json["ok"], answer.json["problems"]) == (0, True, [])
    found: list[dict[str, Any]] = answer.json["notes"]
    return found


def made(desk: Workbench, name: str) -> None:
    import pyarrow as pa

    write_deltalake(str(desk.table(name)), pa.table({"id": [1]}))


def test_a_table_that_nobody_writes_and_that_is_not_there_is_noted(desk: Workbench) -> None:
    desk.pipeline(
        "bronze", "extract: {type: csv, path: a.csv}\nload: {type: delta, table: orders}\n"
    )
    desk.pipeline("silver", COPY % ("order", "clean"))
    (found,) = notes(desk)
    assert found["file"].endswith("pipelines/silver.yaml")
    assert (found["line"], found["code"]) == (2, "unknown_table")
    assert found["message"] == 'table "order" does not exist, and no pipeline writes it'
    assert found["hint"] == 'did you mean "orders"?'


def test_a_table_of_a_check_is_noted_at_the_check(desk: Workbench) -> None:
    desk.pipeline(
        "p",
        "extract: {type: csv, path: a.csv}\nchecks:\n"
        "  - {type: references, table: customers, columns: [id]}\n"
        "load: {type: delta, table: t}\n",
    )
    assert [(one["line"], one["code"]) for one in notes(desk)] == [(4, "unknown_table")]


def test_a_table_that_is_there_or_is_written_needs_no_note(desk: Workbench) -> None:
    made(desk, "raw")
    desk.pipeline("one", COPY % ("raw", "a"))
    desk.pipeline("two", COPY % ("a", "b"))
    assert notes(desk) == []
    assert notes(desk, "two") == []  # what other files of the project write is known as well


def test_a_table_in_a_bucket_is_not_looked_for(desk: Workbench) -> None:
    desk.pipeline("p", "extract: {type: delta, path: 's3://b/t'}\nload: {type: delta, table: t}\n")
    assert notes(desk) == []


def test_pipelines_that_read_each_other_are_noted_once(desk: Workbench) -> None:
    desk.pipeline("one", COPY % ("b", "a"))
    desk.pipeline("two", COPY % ("a", "b"))
    (found,) = notes(desk)
    assert (found["line"], found["code"]) == (2, "circle")
    assert found["message"].startswith("these pipelines read each other's tables: ")
    assert found["message"].removeprefix("these pipelines read each other's tables: ") in (
        "one -> two -> one",
        "two -> one -> two",
    )


def test_a_file_with_problems_may_write_the_table(desk: Workbench) -> None:
    desk.pipeline("one", COPY % ("raw", "a"))
    desk.pipeline("bad", "extract: {type: cvs}\nload: {type: delta, table: raw}\n")
    answer = desk.cli("validate", "--json")
    assert (answer.json["ok"], answer.json["notes"]) == (False, [])
    assert notes(desk, "one") == []


def test_a_note_is_no_error_and_has_its_place(desk: Workbench) -> None:
    desk.pipeline("silver", COPY % ("orders", "clean"))
    answer = desk.cli("validate")
    assert (answer.code, answer.stdout) == (0, "1 pipeline ok\n")
    first, second = answer.stderr.splitlines()
    assert first.startswith("note: ")
    assert "pipelines/silver.yaml:2: table" in first
    assert second.startswith("  fix: ")
