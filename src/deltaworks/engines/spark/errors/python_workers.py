"""What goes wrong on a worker before it runs anything: its Python is missing, or another one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from deltaworks.errors import ConfigError

_OTHER_VERSION = re.compile(
    r"Python in worker has different version: (\S+) than that in driver: ([\d.]+\d)"
)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_HINT = "name one that they have: engine: {conf: {spark.pyspark.python: /path/to/python}}"


def worker_trouble(messages: Iterable[str]) -> ConfigError | None:
    """The error for workers that cannot run Python as this driver needs it, if that is it."""
    for message in messages:
        if found := _OTHER_VERSION.search(message):
            return ConfigError(
                f"the workers run Python {found[1]}, and the driver Python {found[2]}",
                hint=_HINT,
            )
        if found := _NO_PROGRAM.search(message):
            return ConfigError(f'the workers have no "{found[1]}"', hint=_HINT)
    return None
