"""YAML as people mean it: version 1.2, with the line of everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaworks.config.documents import dotted, load_document, parse_document, shown_path
from deltaworks.errors import ConfigError, SpecError

FILE = Path("orders.yaml")


def value(text: str) -> Any:
    return parse_document(text, FILE).value


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "y", "n", "2026-01-31", "12:30:45"])
def test_words_that_yaml_1_1_took_for_something_else_are_text(word: str) -> None:
    assert value(f"key: {word}") == {"key": word}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("true", True),
        ("False", False),
        ("12", 12),
        ("-3", -3),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".inf", float("inf")),
        ("~", None),
        ("", None),
        ('"12"', "12"),
        ("'no'", "no"),
        ("2026_01", "2026_01"),
        ("1_0.5", "1_0.5"),
        ("+.INF", float("inf")),
    ],
)
def test_numbers_booleans_and_nothing_are_what_they_look_like(written: str, read: object) -> None:
    found = value(f"key: {written}")["key"]
    assert (found, type(found)) == (read, type(read))


def test_an_empty_file_holds_nothing() -> None:
    assert value("") is None
    assert value("# only a comment\n") is None


def test_json_is_read_too() -> None:
    assert value('{"pipeline": "p", "load": [{"type": "delta"}]}') == {
        "pipeline": "p",
        "load": [{"type": "delta"}],
    }


def test_everything_has_its_line() -> None:
    document = parse_document("a: 1\nb:\n  - x\n  - {c: 1,\n     d: 2}\n", FILE)
    assert document.line(("a",)) == 1
    assert document.line(("b",)) == 2
    assert document.line(("b", 0)) == 3
    assert document.line(("b", 1)) == 4
    assert document.line(("b", 1, "d")) == 5


def test_what_is_not_there_has_the_line_of_what_is_around_it() -> None:
    document = parse_document("a: 1\nb:\n  c: 2\n", FILE)
    assert document.line(("b", "missing", "deeper")) == 2
    assert document.line(("nowhere",)) == 1


def test_anchors_and_merged_aliases_are_values_like_others() -> None:
    assert value("a: &x [1, 2]\nb: *x\n") == {"a": [1, 2], "b": [1, 2]}


def test_a_file_that_explodes_through_aliases_is_refused() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcde", "bcdef", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    with pytest.raises(SpecError, match="entries"):
        parse_document(bomb, FILE)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\na: 2\n", 2, '"a" is defined twice'),
        ("a: {b: 1, b: 2}\n", 1, '"b" is defined twice'),
        ("a: [1, 2\nb: 3\n", 2, "expected"),
        ("a: 'open\n", 2, "unexpected end"),
        ("a: 1\n  b: 2\n", 2, "mapping values are not allowed"),
        ("a:\n\t- 1\n", 2, "token"),
        ("a: 1\n--- \nb: 2\n", 2, "another document"),
        ("a: *nobody\n", 1, "undefined alias"),
    ],
)
def test_a_broken_file_is_placed_and_explained(text: str, line: int, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_document(text, FILE)
    problem = caught.value.problems[0]
    assert (problem.file, problem.line, problem.code) == ("orders.yaml", line, "yaml")
    assert words in problem.message


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").touch()
    with pytest.raises(ConfigError) as caught:
        load_document(tmp_path / "order.yaml")
    assert caught.value.hint == 'did you mean "orders.yaml"?'


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_document(tmp_path / "none" / "order.yaml")
    assert f'folder "{tmp_path}/none" does not exist' in caught.value.hint


def test_a_file_in_another_encoding_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("pipeline: caf\xe9".encode("latin-1"))
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load_document(tmp_path / "latin.yaml")


def test_places_are_written_as_people_write_them() -> None:
    assert dotted(("transform", 2, "columns", "id")) == "transform[2].columns.id"
    assert dotted(()) == ""


def test_paths_are_shown_from_where_the_user_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(tmp_path / "a" / "b.yaml") == "a/b.yaml"
    assert shown_path(Path("/elsewhere/b.yaml")) == "/elsewhere/b.yaml"
