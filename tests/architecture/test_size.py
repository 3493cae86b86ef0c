"""Modules and functions stay short enough to be read at once."""

from __future__ import annotations

from tests.architecture.source_tree import body_lines, functions, modules, name_of

MODULE_LINES = 500
FUNCTION_LINES = 50
FUNCTION_LINES_P90 = 20


def test_no_module_is_longer_than_500_lines() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in modules()}
    assert {name: n for name, n in lengths.items() if n > MODULE_LINES} == {}


def test_no_function_is_longer_than_50_lines() -> None:
    lengths = {place: body_lines(function) for place, function in functions()}
    assert {place: n for place, n in lengths.items() if n > FUNCTION_LINES} == {}


def test_nine_functions_in_ten_have_at_most_20_lines() -> None:
    lengths = sorted(body_lines(function) for _, function in functions())
    assert lengths[len(lengths) * 9 // 10] <= FUNCTION_LINES_P90
