"""Properties of a table mean to us what they mean to Delta, however they are spelled."""

from __future__ import annotations

from datetime import timedelta

import pytest

from deltaworks.model.table_properties import interval, is_on, maps_columns, whole_number

DAYS_30 = timedelta(days=30)


@pytest.mark.parametrize("value", ["true", "True", "TRUE"])
def test_a_flag_is_set_in_any_case(value: str) -> None:
    assert is_on({"flag": value}, "flag")
    assert is_on({"flag": value}, "flag", default=False)


@pytest.mark.parametrize("value", ["false", "False", "FALSE"])
def test_a_flag_is_not_set_in_any_case(value: str) -> None:
    assert not is_on({"flag": value}, "flag", default=True)


def test_a_flag_that_is_not_there_has_its_default_and_an_odd_one_counts_as_set() -> None:
    assert is_on({}, "flag", default=True)
    assert not is_on({}, "flag")
    assert is_on({"flag": "yes"}, "flag")  # Delta reads no such table, so nobody relies on it


@pytest.mark.parametrize(
    ("value", "number"),
    [("5", 5), ("+5", 5), ("0", 10), ("-1", 10), ("5.0", 10), ("ten", 10), ("", 10), ("٣", 3)],
)
def test_a_number_is_one_that_delta_takes(value: str, number: int) -> None:
    assert whole_number({"n": value}, "n", default=10, least=1) == number
    assert whole_number({}, "n", default=10, least=1) == 10


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("interval 7 days", timedelta(days=7)),
        ("INTERVAL 7 DAYS", timedelta(days=7)),
        ("7 days", timedelta(days=7)),
        ("interval 1 week 2 days 3 hours", timedelta(days=9, hours=3)),
        (" interval 1 minute 30 seconds ", timedelta(seconds=90)),
        ("interval 1500 milliseconds", timedelta(seconds=1.5)),
        ("interval 10 microseconds", timedelta(microseconds=10)),
        ("interval 2 days -1 day", timedelta(days=1)),
        ("interval 99999999999 weeks", timedelta.max),
        ("interval 1 month", None),  # months differ, so Delta refuses them
        ("interval", None),
        ("7", None),
        ("", None),
        ("interval 7 days or so", None),
    ],
)
def test_an_interval_is_read_with_or_without_its_word(value: str, length: timedelta | None) -> None:
    assert interval({"kept": value}, "kept", default=DAYS_30) == length


def test_an_interval_that_is_not_there_has_its_default() -> None:
    assert interval({}, "kept", default=DAYS_30) == DAYS_30


def test_column_mapping_may_be_off_in_any_case() -> None:
    assert not maps_columns({})
    assert not maps_columns({"delta.columnMapping.mode": "None"})
    assert maps_columns({"delta.columnMapping.mode": "NAME"})
