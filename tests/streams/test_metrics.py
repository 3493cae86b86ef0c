"""What streams do, for Prometheus, and the extra it needs (S9)."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from deltaworks.errors import MissingDependencyError
from deltaworks.model.epochs import Limits
from deltaworks.observe.stream_metrics import StreamMetrics
from tests.streams.tables import SCHEMA, batch
from tests.workbench import Workbench


def test_figures_of_a_stream_can_be_scraped(desk: Workbench) -> None:
    metrics = StreamMetrics()
    project = desk.open(listeners=[metrics])
    with project.stream("events", writer_id="a", schema=SCHEMA) as sink:
        for n in (1, 2):
            sink.write(batch(1, 2, 3))
            sink.commit_epoch(n)
    text = metrics.text()
    labels = '{stream="events",writer="a"}'
    for line in (
        f"deltaworks_stream_rows_total{labels} 6.0",
        f"deltaworks_stream_epochs_total{labels} 2.0",
        f"deltaworks_stream_flushes_total{labels} 2.0",
        f"deltaworks_stream_flushed_rows_total{labels} 6.0",
        f"deltaworks_stream_commit_seconds_count{labels} 2.0",
        f"deltaworks_stream_last_epoch{labels} 2.0",
    ):
        assert line in text
    for name in ("bytes_total", "buffer_bytes", "lag_seconds", "last_commit_timestamp_seconds"):
        assert f"deltaworks_stream_{name}{labels}" in text


def value(metrics: StreamMetrics, name: str) -> float:
    (line,) = [
        line
        for line in metrics.text().splitlines()
        if line.startswith(f"deltaworks_stream_{name}{{")
    ]
    return float(line.rsplit(" ", 1)[1])


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_rows_that_wait_for_their_epoch_can_be_seen_to_wait(desk: Workbench, mode: str) -> None:
    metrics = StreamMetrics()
    words: dict[str, Any] = {"mode": mode} | ({"keys": ["id"]} if mode == "upsert" else {})
    limits = Limits(flush_rows=2)
    project = desk.open(listeners=[metrics])
    with project.stream("events", writer_id="a", schema=SCHEMA, limits=limits, **words) as sink:
        assert sink.lag_seconds == 0
        sink.write(batch(1))
        time.sleep(0.05)
        assert sink.lag_seconds >= 0.05
        sink.write(batch(2, 3))
        while "flushes_total{" not in metrics.text():
            time.sleep(0.01)
        assert value(metrics, "lag_seconds") >= 0.05
        assert value(metrics, "flushed_bytes_total") > 0
        sink.commit_epoch(1)
        assert sink.lag_seconds == 0
        before = value(metrics, "last_commit_timestamp_seconds")
        assert abs(time.time() - before) < 60


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingDependencyError) as caught:
        StreamMetrics()
    assert caught.value.hint == 'pip install "deltaworks[metrics]"'
