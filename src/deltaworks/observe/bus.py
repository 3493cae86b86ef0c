"""Tells listeners what happened. A listener that fails cannot fail the run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from deltaworks.model.events import Event

Listener = Callable[[Event], None]
_log = logging.getLogger("deltaworks")


class Bus:
    """Hands every event to every listener."""

    def __init__(self, listeners: Sequence[Listener] = ()) -> None:
        self._listeners = tuple(listeners)

    def tell(self, event: Event) -> None:
        """Tell everybody; log whoever cannot take it."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # noqa: BLE001 - a listener is not part of the run
                _log.exception("a listener failed on %s", type(event).__name__)
