"""Figures of streams for Prometheus: a listener that counts, and a text that can be scraped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltaworks.errors import MissingDependencyError
from deltaworks.model.events import EpochCommitted, Event, RowsFlushed

if TYPE_CHECKING:
    from types import ModuleType

_LABELS = ("stream", "writer")
_SECONDS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def _client() -> ModuleType:
    try:
        import prometheus_client
    except ImportError as missing:
        raise MissingDependencyError(
            "metrics need the package prometheus-client",
            hint='pip install "deltaworks[metrics]"',
        ) from missing
    return prometheus_client


class StreamMetrics:
    """Counts what streams do; give it to a project as a listener."""

    def __init__(self) -> None:
        client = _client()
        self._text = client.generate_latest
        self.registry = client.CollectorRegistry()

        def made(kind: Any, name: str, says: str, **options: Any) -> Any:
            full = f"deltaworks_stream_{name}"
            return kind(full, says, _LABELS, registry=self.registry, **options)

        self._rows = made(client.Counter, "rows", "Rows that can be read.")
        self._bytes = made(client.Counter, "bytes", "Bytes of data files that can be read.")
        self._epochs = made(client.Counter, "epochs", "Epochs that landed.")
        self._flushes = made(client.Counter, "flushes", "Times that rows were put into storage.")
        self._flushed = made(client.Counter, "flushed_rows", "Rows put into storage.")
        self._packed = made(client.Counter, "flushed_bytes", "Bytes in memory of these rows.")
        self._commit = made(
            client.Histogram, "commit_seconds", "From the call to the answer.", buckets=_SECONDS
        )
        self._buffer = made(client.Gauge, "buffer_bytes", "What waits in memory.")
        self._lag = made(client.Gauge, "lag_seconds", "Age of the oldest row at the last event.")
        self._at = made(client.Gauge, "last_commit_timestamp_seconds", "When an epoch last landed.")
        self._last = made(client.Gauge, "last_epoch", "The last epoch that landed.")

    def __call__(self, event: Event) -> None:
        """Hear of an event."""
        if isinstance(event, RowsFlushed):
            labels = (event.pipeline, event.writer_id)
            self._flushes.labels(*labels).inc()
            self._flushed.labels(*labels).inc(event.rows)
            self._packed.labels(*labels).inc(event.size_bytes)
            self._buffer.labels(*labels).set(event.buffered_bytes)
            self._lag.labels(*labels).set(event.lag_seconds)
        elif isinstance(event, EpochCommitted):
            self._count(event)

    def text(self) -> str:
        """Everything so far, as Prometheus reads it."""
        return str(self._text(self.registry).decode("utf-8"))

    def _count(self, event: EpochCommitted) -> None:
        labels, commit = (event.pipeline, event.writer_id), event.commit
        self._rows.labels(*labels).inc(commit.rows)
        self._bytes.labels(*labels).inc(commit.size_bytes)
        self._epochs.labels(*labels).inc()
        self._commit.labels(*labels).observe(commit.seconds)
        self._buffer.labels(*labels).set(event.buffered_bytes)
        self._lag.labels(*labels).set(commit.lag_seconds)
        self._last.labels(*labels).set(commit.epoch)
        self._at.labels(*labels).set_to_current_time()
