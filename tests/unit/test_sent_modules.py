"""Modules of a project that go to Spark's workers by value."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from deltaworks.engines.spark.transforms.python import _by_value


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("made_for_a_test")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def sent() -> set[str]:
    from pyspark.cloudpickle import cloudpickle

    pickles: Any = cloudpickle
    return set(pickles.list_registry_pickle_by_value())


def test_a_module_of_two_names_is_sent_once(module: ModuleType) -> None:
    with _by_value({"a": module, "b": module}):
        assert module.__name__ in sent()
    assert module.__name__ not in sent()


def test_a_step_that_ends_takes_nothing_from_one_beside_it(module: ModuleType) -> None:
    with _by_value({"a": module}):
        with _by_value({"a": module}):
            pass
        assert module.__name__ in sent()
    assert module.__name__ not in sent()
