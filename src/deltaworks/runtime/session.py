"""When Spark is started: not before the first thing that needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.config.project import ProjectConfig
from deltaworks.config.storage import StoreAccess
from deltaworks.engines.object_stores import hadoop_settings, log_store_settings
from deltaworks.engines.spark.s3_jars import store_jars
from deltaworks.engines.spark.versions import CORE_JARS
from deltaworks.errors import ConfigError
from deltaworks.model.table_ref import OWN_FOLDER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkStarter:
    """Starts Spark once for a project, or goes on with the session its user brought."""

    def __init__(
        self,
        config: ProjectConfig,
        *,
        own: SparkSession | None = None,
        notify: Callable[[str], None],
    ) -> None:
        self._config = config
        self._own = own
        self._notify = notify
        self._base: SparkSession | None = None
        self._owns_jvm = False
        self._starting = threading.Lock()

    @property
    def started(self) -> bool:
        """Whether there is a session already."""
        return self._base is not None

    def session(
        self, run_id: str | None, *, input_bytes: Callable[[], int | None] = lambda: None
    ) -> SparkSession:
        """A session of its own for one run; a run's name keeps Spark's log."""
        logs = Path(self._config.warehouse) / OWN_FOLDER / "logs"
        log_file = logs / f"spark-{run_id}.log" if run_id else None
        return self._start(log_file, input_bytes).newSession()

    def shared(self) -> SparkSession:
        """The project's session, for notebooks."""
        return self._start(None, lambda: None)

    def close(self) -> None:
        """Stop Spark, if it was started here."""
        if self._base is not None and self._owns_jvm:
            from deltaworks.engines.spark.session import stop_session

            stop_session(self._base)
        self._base = None

    def _start(self, log_file: Path | None, input_bytes: Callable[[], int | None]) -> SparkSession:
        from deltaworks.engines.spark.session import is_up

        with self._starting:  # several runs may need it at the same moment
            if self._base is None or (self._owns_jvm and not is_up()):
                self._base = self._adopt() or self._launch(log_file, input_bytes)
            return self._base

    def _adopt(self) -> SparkSession | None:
        from deltaworks.engines.spark.session import adopt_session

        return None if self._own is None else adopt_session(self._own)

    def _launch(self, log_file: Path | None, input_bytes: Callable[[], int | None]) -> SparkSession:
        from deltaworks.engines.spark.session import SessionSettings, is_up, start_session

        master = self._config.engine.master
        if master.startswith("sc://"):
            raise ConfigError("Spark Connect comes with a later release", hint="use local[*]")
        found = (self._config.store_access(location) for location in self._config.storage)
        stores = [access for access in found if access is not None]
        self._owns_jvm = not is_up()
        settings = SessionSettings(
            app_name=f"deltaworks {self._config.name}",
            master=master,
            conf={**_joined(stores, log_store_settings), **self._config.engine.conf},
            jars=(*CORE_JARS, *store_jars(stores)),
            log_file=log_file,
            hadoop=_joined(stores, hadoop_settings),
            compiler=self._config.engine.compiler,
            input_bytes=input_bytes() if self._owns_jvm else None,
        )
        environ = self._config.names.environ
        return start_session(settings, environ=environ, notify=self._notify)


def _joined(
    stores: Sequence[StoreAccess], spelled: Callable[[StoreAccess], dict[str, str]]
) -> dict[str, str]:
    """The settings of all stores, in the words of one engine."""
    return {key: value for access in stores for key, value in spelled(access).items()}
