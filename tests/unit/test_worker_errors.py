"""Workers that cannot run Python as the driver needs it are named, with the setting that helps."""

from __future__ import annotations

import pytest

from deltaworks.engines.spark.errors.connectors import worker_trouble

SETTING = "engine: {conf: {spark.pyspark.python: /path/to/python}}"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "Python in worker has different version: 3.9 than that in driver: 3.11, PySpark cannot",
            "the workers run Python 3.9, and the driver Python 3.11",
        ),
        (
            'java.io.IOException: Cannot run program "python3.11": error=2, No such file',
            'the workers have no "python3.11"',
        ),
    ],
)
def test_a_worker_without_the_right_python_is_told(said: str, message: str) -> None:
    found = worker_trouble(["Job aborted", said])
    assert found is not None
    assert found.message == message
    assert SETTING in found.hint
    assert "{0}" not in found.hint


def test_other_trouble_is_left_to_others() -> None:
    assert worker_trouble(["Job aborted", "no space left on device"]) is None
