from __future__ import annotations

import pytest

from deltaworks.suggest import did_you_mean


@pytest.mark.parametrize(
    ("word", "right"),
    [("merge_key", "merge_keys"), ("CVS", "csv"), ("Order_ID", "order_id"), ("castt", "cast")],
)
def test_a_near_word_is_suggested_whatever_its_case(word: str, right: str) -> None:
    choices = ["csv", "cast", "merge_keys", "order_id"]
    assert did_you_mean(word, choices) == f'did you mean "{right}"?'


def test_the_choice_keeps_its_own_spelling() -> None:
    assert did_you_mean("orderid", ["OrderId"]) == 'did you mean "OrderId"?'


def test_with_nothing_near_the_choices_are_listed_and_cut() -> None:
    assert did_you_mean("zzz", ["csv", "delta"]) == "available: csv, delta"
    assert did_you_mean("zzz", [f"c{i}" for i in range(20)]).endswith("c10, c11, ...")


def test_without_choices_nothing_is_said() -> None:
    assert did_you_mean("zzz", []) == ""
