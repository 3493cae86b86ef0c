"""`${var:NAME}`, `${env:NAME}` and `${secret:NAME}` stand for values; all else stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaworks.config.documents import parse_document
from deltaworks.config.interpolate import Names, interpolate
from deltaworks.errors import Problem
from deltaworks.redact import MASK, scrub

NAMES = Names({"day": "2026-01-02", "empty": ""}, {"HOME_OF_DATA": "/data"})


def replaced(text: str) -> tuple[Any, tuple[Problem, ...]]:
    document, problems = interpolate(parse_document(text, Path("p.yaml")), NAMES)
    return document.value, problems


def test_variables_and_environment_are_replaced_wherever_text_stands() -> None:
    value, problems = replaced(
        'path: "${env:HOME_OF_DATA}/orders_${var:day}.csv"\nlist: [{deep: "${var:day}"}]\n'
    )
    assert value == {
        "path": "/data/orders_2026-01-02.csv",
        "list": [{"deep": "2026-01-02"}],
    }
    assert problems == ()


def test_an_empty_value_is_a_value() -> None:
    assert replaced('a: "x${var:empty}y"')[0] == {"a": "xy"}


def test_keys_numbers_and_lone_dollars_stay() -> None:
    assert replaced('${var:day}: 1\ncost: "5$ or $x"\n')[0] == {
        "${var:day}": 1,
        "cost": "5$ or $x",
    }


def test_a_doubled_dollar_stands_for_itself() -> None:
    assert replaced('a: "$${var:day}"') == ({"a": "${var:day}"}, ())


def test_a_value_is_not_looked_into_again() -> None:
    names = Names({"outer": "${var:inner}", "inner": "x"}, {})
    document = parse_document('a: "${var:outer}"', Path("p.yaml"))
    assert interpolate(document, names)[0].value == {"a": "${var:inner}"}


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("${var:dya}", 'variable "dya" is not set', 'did you mean "day"? (or give it: --var'),
        ("${env:NO_SUCH}", 'environment variable "NO_SUCH" is not set', "export NO_SUCH=..."),
        ("${day}", "is not a name that can be replaced", "write ${var:NAME}"),
        ("${vault:x}", "is not a name that can be replaced", "write ${var:NAME}"),
    ],
)
def test_a_name_that_stands_for_nothing_is_placed(written: str, message: str, hint: str) -> None:
    value, problems = replaced(f'\na:\n  b: "{written}"\n')
    assert value == {"a": {"b": written}}
    assert message in problems[0].message
    assert hint in problems[0].hint
    assert (problems[0].line, problems[0].path) == (3, "a.b")


def test_every_unknown_name_is_reported() -> None:
    assert len(replaced('a: "${var:x} ${var:y}"\nb: "${env:NO_SUCH}"')[1]) == 3


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ('headers: "Bearer ${env:GIVEN}"', "w0rd-of-mouth"),
        ('dsn: "${env:GIVEN}"', "host=db user=me password=w0rd-of-mouth dbname=x"),
        ('dsn: "${env:GIVEN}"', "password='w0rd-of-mouth' host=db"),
        ('dsn: "${env:GIVEN}"', 'Driver=x;Server=db;PWD="w0rd-of-mouth"'),
    ],
)
def test_a_secret_within_a_value_or_after_its_word_is_kept_out_of_texts(
    written: str, given: str
) -> None:
    interpolate(parse_document(written, Path("p.yaml")), Names({}, {"GIVEN": given}))
    assert scrub("it is w0rd-of-mouth") == f"it is {MASK}"
    assert scrub("the host is db") == "the host is db"
