"""When Spark is started: not before the first thing that needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.config.cache import cache_dir
from deltaworks.config.object_stores import StoreAccess, Stores, store_place
from deltaworks.config.project import ProjectConfig
from deltaworks.engines.spark.jars.connectors import connector_jars
from deltaworks.engines.spark.jars.resolve import ensure_jars
from deltaworks.engines.spark.jars.s3 import store_jars
from deltaworks.engines.spark.java.find import find_java
from deltaworks.engines.spark.session.connect import add_jars
from deltaworks.engines.spark.versions import CORE_JARS
from deltaworks.model.table_ref import OWN_FOLDER, is_url
from deltaworks.storage.engine_options import log_store_settings

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
        self._needed: dict[str, Stores] = {}
        self._reached: set[str] = set()

    @property
    def _remote(self) -> bool:
        """Whether Spark is a Connect server, which has no JVM that could end with us."""
        return self._config.engine.master.startswith("sc://")

    @property
    def started(self) -> bool:
        """Whether there is a session already."""
        return self._base is not None

    def session(
        self,
        run_id: str | None,
        *,
        connectors: Collection[str] = frozenset(),
        input_bytes: Callable[[], int | None] = lambda: None,
    ) -> SparkSession:
        """A session of its own for one run; a run's name keeps Spark's log."""
        from deltaworks.engines.spark.session.connect import sibling
        from deltaworks.engines.spark.session.required_conf import require_settled

        logs, files = _log_folder(self._config), self._fetched(connectors)
        log_file = logs / f"spark-{run_id}.log" if run_id else None
        spark = sibling(self._start(log_file, input_bytes))
        require_settled(spark, self._config.engine.conf)
        add_jars(spark, files)
        return spark

    def need(self, locations: Iterable[str], stores: Stores) -> None:
        """Places that are going to be read or written: from now on sessions reach them."""
        for location in locations:
            if store_place(location) is not None:
                self._needed[location] = stores

    def at(self, location: str, stores: Stores) -> SparkSession:
        """The project's session, which reaches a place."""
        self.need((location,), stores)
        return self._start(None)

    def shared(self) -> SparkSession:
        """The project's session, for notebooks."""
        return self._start(None, lambda: None)

    def close(self) -> None:
        """Stop Spark, if it was started here."""
        from deltaworks.engines.spark.session.connect import let_go

        if self._base is not None and self._owns_jvm:
            from deltaworks.engines.spark.session.start import stop_session

            stop_session(self._base)
        elif self._base is not None:
            let_go(self._base)
        self._base = None

    def _fetched(self, connectors: Collection[str]) -> tuple[Path, ...]:
        """The jars of connectors, downloaded when they are needed for the first time."""
        if not connectors:
            return ()
        environ = self._config.names.environ
        cache = cache_dir(environ)
        jars = connector_jars(connectors)
        java = find_java(environ, cache=cache)
        return ensure_jars(jars, java=java, cache=cache, environ=environ, notify=self._notify)

    def _start(
        self, log_file: Path | None, input_bytes: Callable[[], int | None] = lambda: None
    ) -> SparkSession:
        from deltaworks.engines.spark.session.start import is_up

        with self._starting:  # several runs may need it at the same moment
            if self._base is None or (self._owns_jvm and not self._remote and not is_up()):
                self._reached.clear()
                self._base = self._adopt() or self._launch(log_file, input_bytes)
            self._reach(self._base)
            return self._base

    def _reach(self, spark: SparkSession) -> None:
        """Tell a session that is up of the stores it is to reach."""
        from deltaworks.engines.spark.session.start import reach_stores

        new = [location for location in self._needed if location not in self._reached]
        reach_stores(spark, self._stores(new), theirs=self._own is not None)
        self._reached.update(new)

    def _stores(self, locations: Iterable[str]) -> list[StoreAccess]:
        found = (self._needed[location].access(location) for location in locations)
        return list({access.bucket: access for access in found if access is not None}.values())

    def _adopt(self) -> SparkSession | None:
        from deltaworks.engines.spark.session.start import adopt_session

        return None if self._own is None else adopt_session(self._own, self._config.engine.conf)

    def _launch(self, log_file: Path | None, input_bytes: Callable[[], int | None]) -> SparkSession:
        from deltaworks.engines.spark.session.start import SessionSettings, is_up, start_session

        master = self._config.engine.master
        stores = self._stores(self._needed)
        self._owns_jvm = self._remote or not is_up()
        settings = SessionSettings(
            app_name=f"deltaworks {self._config.name}",
            master=master,
            conf={**_joined(stores, log_store_settings), **self._config.engine.conf},
            jars=(*CORE_JARS, *store_jars(stores)),
            log_file=log_file,
            compiler=self._config.engine.compiler,
            input_bytes=input_bytes() if self._owns_jvm else None,
        )
        environ = self._config.names.environ
        return start_session(settings, environ=environ, notify=self._notify)


def _log_folder(config: ProjectConfig) -> Path:
    """Where Spark's logs are kept, which must be on this machine."""
    if is_url(config.warehouse):
        return config.root / f".{OWN_FOLDER.strip('_')}" / "logs"
    return Path(config.warehouse) / OWN_FOLDER / "logs"


def _joined(
    stores: Sequence[StoreAccess], spelled: Callable[[StoreAccess], dict[str, str]]
) -> dict[str, str]:
    """The settings of all stores, in the words of one engine."""
    return {key: value for access in stores for key, value in spelled(access).items()}
