"""Moments and spans of time as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from deltaworks.clock import parse_duration


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        (" 2h ", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("0.5s", timedelta(milliseconds=500)),
    ],
)
def test_a_span_of_time_is_a_number_and_a_unit(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "90", "s", "-1s", "1 h", "1w", "0s", "1h30m", "1e3s"])
def test_what_is_no_span_of_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="write it as 90s, 30m, 2h or 1d"):
        parse_duration(text)
