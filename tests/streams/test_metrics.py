"""What streams do, for Prometheus, and the extra it needs (S9)."""

from __future__ import annotations

import sys

import pytest

from deltaworks.errors import MissingDependencyError
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
    for name in ("bytes_total", "buffer_bytes", "lag_seconds"):
        assert f"deltaworks_stream_{name}{labels}" in text


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingDependencyError) as caught:
        StreamMetrics()
    assert caught.value.hint == 'pip install "deltaworks[metrics]"'
