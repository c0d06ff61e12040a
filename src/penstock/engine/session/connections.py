"""Open the Spark session and the lakes of a project, each when it is first needed; `RunContext`
shares them among the attempts of a run, with their state and whether the run is cancelled.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from penstock.engine.session.cache import scripts
from penstock.errors import ArgumentError, CatalogMissing, LakeClosed
from penstock.events import EventSink
from penstock.model.project.loader import Loaded, load_models
from penstock.model.values.asset import DEFAULT_LAKE, DEFAULT_SCHEMA, TableName
from penstock.settings.config import LakeSettings, Settings
from penstock.settings.keys import DELTA
from penstock.spark.session import Starter
from penstock.sql.identifiers import LAKES, fold, nearest
from penstock.sql.macros import Book
from penstock.sql.tokens import SqlText

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.lakes.catalog.catalog import Catalog
    from penstock.lakes.lake import Lake
    from penstock.lakes.limits import Limits
    from penstock.spark.memory import MemoryBudget
    from penstock.spark.session import SparkSource


_LOOK = 2.0  # seconds for which a Delta root is taken to be as it was last seen


def attach_root(settings: LakeSettings, spark: SparkSource, limits: Limits) -> Lake:
    """A Delta root for writing; a new one has no tables."""
    from penstock.destinations.delta.lake import DeltaLake
    from penstock.engine.state.carried import restore

    assert settings.data_path is not None, "a root says where it is"
    return DeltaLake.of_root(
        settings.data_path,
        settings.catalog,
        metadata_schema=settings.metadata_schema,
        spark=spark,
        name=settings.name,
        storage=settings.storage or None,
        restore=restore,
        limits=limits,
        deletion_vectors=settings.deletion_vectors,
    )


def open_index_of(settings: LakeSettings) -> Catalog:
    """The index of a Delta root, which is made where the root has tables. Raises CatalogMissing
    where it has none, and no run has made any.
    """
    from weakref import finalize

    from penstock.destinations.delta.lake import open_index
    from penstock.engine.state.carried import restore
    from penstock.lakes.storage import Storage, hold

    root = settings.data_path
    assert root is not None, "a root says where it is"
    release = hold(root, Storage.of(settings.storage or None))
    try:
        catalog = open_index(
            root, settings.catalog, settings.metadata_schema, restore, create=False
        )
    except BaseException:
        release()
        raise
    finalize(catalog, release)
    return catalog


def look_again(catalog: Catalog) -> None:
    """Bring the index of a Delta root up to date, unless that was done a moment ago."""
    from penstock.destinations.delta.catalog import DeltaCatalog

    if isinstance(catalog, DeltaCatalog) and time.monotonic() - catalog.looked_at > _LOOK:
        from penstock.destinations.delta.discovery import look
        from penstock.engine.state.carried import restore

        look(catalog, restore)


# Settings by which a session may have more functions than Spark's.
_ADD_FUNCTIONS = ("spark.sql.extensions", "spark.sql.catalog", "spark.plugins")


class Connections:
    """Closed as a whole: every use of closed connections raises LakeClosed."""

    def __init__(
        self, settings: Settings, spark: SparkSession | None, warm: bool | None = None
    ) -> None:
        """``warm``: whether the session is one of a warm server; None: where somebody watches."""
        self.settings = settings
        self._spark = spark
        self._warm = warm
        self._is_own = False  # whether these connections started the session
        self.is_shared = False  # whether other runs of the project are to join the session
        self._uses = ExitStack()  # of a warm server
        self._closed = False
        self._lakes: dict[str, Lake] = {}
        self._catalogs: dict[str, Catalog] = {}
        # Runs of a served project share one session, and each of its lakes.
        self._session_lock, self._lakes_lock = threading.RLock(), threading.RLock()

    @property
    def has_session(self) -> bool:
        return self._spark is not None

    def starts_plain(self) -> bool:
        """Return whether a session is still to be started that will have Spark's own functions
        only.
        """
        settings = self.settings.spark
        added = any(key.startswith(_ADD_FUNCTIONS) for key in settings.conf)
        connects = (settings.master or "").startswith("sc:")
        # Who has loaded it may have a session already, which the project would use.
        return self._spark is None and "pyspark" not in sys.modules and not (added or connects)

    def session(self, sink: EventSink) -> SparkSession:
        """The session of the project, started when there is none; ``sink`` hears that it starts."""
        self.check_open()
        with self._session_lock:
            if self._spark is None:
                from penstock.engine.session.open_session import open_session
                from penstock.engine.session.spark import told_start

                with told_start(self.settings.spark, sink):
                    self._spark = open_session(
                        self.settings, self._warm, sink, self._uses, is_serving=self.is_shared
                    )
                self._is_own = True
            return self._spark

    def serve_project(self, *, shares: bool) -> None:
        """Serve the project with the session that is still to be started.

        Args:
            shares: Whether other runs of the project may join it. Else it is one of this process,
                unless a warm one was asked for.
        """
        if shares and self._warm is not False:
            self.is_shared = True
        elif self._warm is None:
            self._warm = False

    def draws_bars(self) -> bool:
        """Return whether the session that a user gave draws progress bars on the terminal."""
        if self._spark is None or self._is_own:
            return False
        return self._spark.conf.get("spark.ui.showConsoleProgress", "false") == "true"

    def require_spark(self) -> None:
        """Raise EnvironmentMissing when a session cannot be started on this machine."""
        if self._spark is None:
            from penstock.engine.session.spark import require

            require(self.settings.spark)

    def drop_dead_session(self) -> None:
        """Forget a session that has ended since the last call, so that another is started."""
        if self._spark is None or not self._is_own:
            return
        from penstock.engine.session.spark import is_alive

        if not is_alive(self._spark):
            self.release_session()

    def interrupt_session(self) -> None:
        """Stop all jobs of the Spark session that these connections started."""
        session = self._spark if self._is_own else None
        if session is not None:
            with suppress(Exception):  # Spark may have ended already
                session.interruptAll()

    def release_session(self) -> None:
        """End the Spark session that these connections started. The next use starts another."""
        with self._session_lock, self._lakes_lock:
            if self._spark is None or not self._is_own:
                return
            from penstock.engine.session.spark import end

            end(self._spark)
            self._uses.close()  # leave the warm server, which may end
            self._spark = None
            for lake in self._lakes.values():  # they hold the session that has ended
                lake.close()
            self._lakes.clear()

    def lake(
        self, name: str, spark: Callable[[], SparkSession], *, new_catalog: bool = False
    ) -> Lake:
        """The lake ``name`` of penstock.toml, attached for writing; a new lake is created.

        Raises ArgumentError, CatalogVanished.
        """
        self.check_open()
        settings = self.lake_settings(name)
        with self._lakes_lock:
            if name not in self._lakes or self._lakes[name].catalog.closed:
                source = Starter(spark, self.starts_plain)
                if settings.kind == DELTA:
                    self._lakes[name] = attach_root(settings, source, self._limits())
                    return self._lakes[name]
                from penstock.lakes.lake import Lake

                self._lakes[name] = Lake.attach(
                    settings.catalog,
                    data_path=settings.data_path,
                    override_data_path=settings.override_data_path,
                    metadata_schema=settings.metadata_schema,
                    spark=source,
                    name=name,
                    storage=settings.storage or None,
                    new_catalog=new_catalog,
                    limits=self._limits(),
                )
            elif settings.kind == DELTA:
                self._look(self._lakes[name].catalog)
            return self._lakes[name]

    def steps_at_once(self) -> int | None:
        """Return how many steps run at once by the settings, or else by cores and memory; None
        where only who gave the session knows what it has.
        """
        if self.settings.jobs is not None:
            return self.settings.jobs
        budget = self._budget()
        return None if budget is None else budget.steps

    def _limits(self) -> Limits:
        """Return the limits of changes without Spark: lower ones in a run with little memory."""
        from penstock.lakes.limits import LIMITS

        budget = self._budget()
        return LIMITS if budget is None else LIMITS.within(budget.heap, budget.python)

    def _budget(self) -> MemoryBudget | None:
        if self._spark is not None and not self._is_own:
            return None
        from penstock.spark.memory import budget_of, this_machine

        return budget_of(self.settings.spark, this_machine())

    def lakes(
        self, names: Iterable[str], spark: Callable[[], SparkSession], *, new_catalog: bool = False
    ) -> dict[str, Lake]:
        """These lakes for a run: before Spark starts, so that errors of catalogs come at once, and
        after the check for Java, so that no catalog is made without it.
        """
        self.drop_dead_session()
        self.require_spark()
        return {name: self.lake(name, spark, new_catalog=new_catalog) for name in names}

    def catalog(self, name: str) -> Catalog | None:
        """The catalog of a lake, to read only; None when no run has created it yet."""
        self.check_open()
        settings = self.settings.lakes[name]
        with self._lakes_lock:
            if name in self._lakes and not self._lakes[name].catalog.closed:
                known = self._lakes[name].catalog
            elif name in self._catalogs:
                known = self._catalogs[name]
            else:
                try:
                    self._catalogs[name] = _open_catalog(settings)
                except CatalogMissing:
                    if settings.kind != DELTA:
                        _refuse_abandoned(settings)
                    return None
                return self._catalogs[name]
            if settings.kind == DELTA:
                self._look(known)
            return known

    def _look(self, catalog: Catalog) -> None:

        look_again(catalog)

    def macros(self, home: TableName, called: frozenset[str], text: str) -> Book:
        """The macros of a lake that a text of DuckDB's dialect calls, as they are now."""
        from penstock.lakes.catalog.definitions.stored_sql import load_macros
        from penstock.sql.macro_calls import book_of

        catalog = self.catalog(home.lake)
        path = tuple(dict.fromkeys((home.schema, DEFAULT_SCHEMA)))
        book = Book((), path, lakes=LAKES | {fold(home.lake)} | called)
        if catalog is None:
            return book
        with catalog.reading() as connection:
            latest = catalog.latest().id
            return book_of(
                SqlText(text, "duckdb"),
                lambda names: load_macros(connection, latest, names),
                book,
            )

    def load_models(self, moved: Mapping[str, TableName] | None = None) -> Loaded:
        """The models of the project, which may call macros of the lakes; ``moved`` are tables that
        are elsewhere (`Names`). Raises ModelError; then the connections are closed.
        """
        settings = self.settings
        cache, collects = scripts(settings), gc.isenabled()
        gc.disable()  # thousands of models stay, and to look for garbage among them takes long
        try:
            return load_models(
                settings.root,
                lakes=settings.lakes,
                default_lake=settings.default_lake,
                roots=settings.delta_roots,
                models_dir=settings.models,
                dialect=settings.dialect,
                infer_names=settings.infer_names,
                macros=self.macros,
                cache=cache,
                defaults=settings.defaults,
                variables=settings.variables,
                moved=moved,
            ).checked()
        except BaseException:
            self.close()
            raise
        finally:
            if collects:
                gc.enable()
            if cache is not None:
                cache.save()

    def lake_settings(self, name: str) -> LakeSettings:
        """Raises ArgumentError with the nearest name."""
        lakes = self.settings.lakes
        if name in lakes:
            return lakes[name]
        near = nearest(name, lakes)
        raise ArgumentError(
            f"lake {name!r} does not exist",
            hint=f"did you mean {near!r}?" if near else f"penstock.toml has {', '.join(lakes)}",
        )

    def default_lake(self) -> str:
        """The lake of statements that name none: the only one, otherwise ``main``."""
        return self.settings.default_lake or DEFAULT_LAKE

    def check_open(self) -> None:
        if self._closed:
            raise LakeClosed(
                f"the project in {self.settings.root} is closed",
                hint="load it again, or keep the work inside the `with` block",
            )

    def close(self) -> None:
        """Close the catalogs. A Spark session stays open: the next project uses it."""
        self._closed = True
        for lake in self._lakes.values():
            lake.close()
        for catalog in self._catalogs.values():
            catalog.close()
        self._lakes.clear()
        self._catalogs.clear()


def _open_catalog(settings: LakeSettings) -> Catalog:
    """The catalog of a lake, to read only. Raises CatalogMissing where no run has made it."""
    if settings.kind == DELTA:
        return open_index_of(settings)
    from penstock.lakes.catalog.catalog import Catalog

    moved = settings.override_data_path
    return Catalog.open(
        settings.catalog,
        data_path=settings.data_path if moved else None,
        override_data_path=moved,
        read_only=True,
        metadata_schema=settings.metadata_schema,
    )


def _refuse_abandoned(settings: LakeSettings) -> None:
    """Raise CatalogVanished when files of a lake are there without their catalog."""
    from penstock.lakes.catalog.database.location import parse_location
    from penstock.lakes.catalog.opening import refuse_abandoned
    from penstock.lakes.storage import Storage, hold

    location, path = parse_location(settings.catalog), settings.data_path
    release = hold(path, Storage.of(settings.storage or None)) if path else lambda: None
    try:
        refuse_abandoned(location, path)
    finally:
        release()
