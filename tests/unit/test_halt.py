"""Ctrl-C in a run of its own, where what is raised may be swallowed."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress

import pytest

from deltaworks.errors import Interrupted
from deltaworks.runtime.cancellation import BY_USER, CancellationToken


def test_ctrl_c_that_is_swallowed_stops_the_run_at_its_next_stage() -> None:
    halt = CancellationToken()
    with halt.handle_sigint():
        with suppress(KeyboardInterrupt):  # as Python does when it cleans up
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(Interrupted) as stopped:
            halt.raise_if_cancelled()
    assert stopped.value.context[BY_USER]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_is_raised_as_ever() -> None:
    with pytest.raises(KeyboardInterrupt), CancellationToken().handle_sigint():
        signal.raise_signal(signal.SIGINT)


def test_whoever_listens_already_goes_on_listening() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        halt = CancellationToken()
        with halt.handle_sigint():
            signal.raise_signal(signal.SIGINT)
            halt.raise_if_cancelled()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def test_sparks_own_handler_is_asked_too() -> None:
    def cancel(_number: int, _frame: object) -> None:
        heard.append("cancelled")
        raise KeyboardInterrupt

    heard: list[str] = []
    cancel.__module__ = "pyspark.core.context"
    before = signal.signal(signal.SIGINT, cancel)
    try:
        halt = CancellationToken()
        with halt.handle_sigint():
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            with pytest.raises(Interrupted):
                halt.raise_if_cancelled()
        assert signal.getsignal(signal.SIGINT) is cancel
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == ["cancelled"]


def test_a_handler_that_came_later_stays() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with CancellationToken().handle_sigint():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_hear_nothing() -> None:
    def listen() -> None:
        with CancellationToken().handle_sigint():
            found.append(signal.getsignal(signal.SIGINT))

    found: list[object] = []
    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
