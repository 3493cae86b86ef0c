"""JSON files: the values JSON says, with lines, whatever editor wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaworks.config.documents import load_document, parse_document
from deltaworks.errors import SpecError

FILE = Path("orders.json")
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(value=values, indent=st.sampled_from([None, 0, 2, "\t"]), plain=st.booleans())
def test_what_json_says_is_what_is_read(value: Any, indent: int | str | None, plain: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    found = parse_document(text, FILE).value
    assert json.dumps(found) == json.dumps(value)


def test_every_entry_has_its_line() -> None:
    text = '{\n\t"a": {\n\t\t"b": [1,\n\t\t\t{"c": "x\\ny"}]\n\t},\r\n\t"d":\n\t\t5\n}\n'
    lines = parse_document(text, FILE).lines
    assert {where: lines[where] for where in lines if where} == {
        ("a",): 2,
        ("a", "b"): 3,
        ("a", "b", 0): 3,
        ("a", "b", 1): 4,
        ("a", "b", 1, "c"): 4,
        ("d",): 6,
    }


def test_a_mark_at_the_start_is_no_part_of_the_text(tmp_path: Path) -> None:
    for name in ("a.json", "a.yaml"):
        file = tmp_path / name
        file.write_bytes(b'\xef\xbb\xbf{"a": 1}')
        assert load_document(file).value == {"a": 1}


def test_what_is_yaml_only_is_taken_too() -> None:
    assert parse_document('{"a": 1, # one\n}', FILE).value == {"a": 1}
    assert parse_document("a: 1\n", FILE).value == {"a": 1}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{\n"a": 1\n"b": 2}', 3, '"," or "}" is missing'),
        ('{"a": [1,\n2', 2, '"," or "]" is missing'),
        ('{"a": 1,\n"a": 2}', 2, '"a" is defined twice'),
        ('{"a": 1}\n}', 2, "nothing may follow here"),
        ('{"a":\n}{', 2, "a value is missing"),
        ('{"a"\n 1}{', 2, '":" is missing'),
        ("{1: 2}{", 1, "a key in quotes is missing"),
        ('{"a": "b\n', 1, "control character"),
        ("[" * 300, 1, "nested too deeply"),
    ],
)
def test_broken_json_is_told_as_json_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_document(text, FILE)
    problem = caught.value.problems[0]
    assert problem.line == line
    assert "this is not valid JSON: " in problem.message
    assert message.lower() in problem.message.lower()
