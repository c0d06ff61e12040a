"""The adapter: what dbt asks of a database, answered by the lakes' catalogs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import AdapterConfig, available
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.sql import SQLAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock import (
    catalog,
    external,
    freshness,
    keys,
    partitions,
    python_models,
    seeds,
)
from dbt.adapters.penstock.column import PenstockColumn
from dbt.adapters.penstock.connections import PenstockConnectionManager
from dbt.adapters.penstock.handle import Handle, PenstockResponse
from dbt.adapters.penstock.relation import PenstockRelation
from dbt.adapters.penstock.texts import unquoted
from dbt.adapters.penstock.types import columns_of
from penstock.errors import NotFound, SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.naming import fold
from penstock.lakes.reading.conversions.align import known, typed
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    import agate

_STRATEGIES = (
    *("append", "delete+insert", "insert", "insert_overwrite", "merge", "microbatch"),
    "replace_where",
)
_FULL = CapabilitySupport(support=Support.Full)
logger = AdapterLogger("Penstock")


@dataclass
class PenstockConfig(AdapterConfig):
    """What a model may be configured with beside what dbt itself knows."""

    partition_by: list[str] | str | dict[str, Any] | None = None
    partitioned_by: list[str] | str | dict[str, Any] | None = None
    sorted_by: list[str] | str | None = None
    penstock_stage: bool | None = None


class PenstockAdapter(SQLAdapter):
    """``type: penstock``."""

    ConnectionManager = PenstockConnectionManager
    Relation = PenstockRelation
    Column = PenstockColumn
    AdapterSpecificConfigs = PenstockConfig
    CONSTRAINT_SUPPORT = {  # noqa: RUF012 - dbt's own form
        ConstraintType.check: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }
    _capabilities = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: _FULL,
            Capability.GetCatalogForSingleRelation: _FULL,
            Capability.TableLastModifiedMetadata: _FULL,
            Capability.TableLastModifiedMetadataBatch: _FULL,
            Capability.MicrobatchConcurrency: _FULL,
        }
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        """As dbt makes an adapter."""
        super().__init__(*args, **options)
        self._warnings: set[str] = set()

    @property
    def handle(self) -> Handle:
        """The thread's own."""
        handle = self.connections.get_thread_connection().handle
        assert isinstance(handle, Handle)
        return handle

    @classmethod
    def date_function(cls) -> str:
        """The moment of the query."""
        return "now()"

    @classmethod
    def is_cancelable(cls) -> bool:
        """Jobs of Spark can be cancelled."""
        return True

    def debug_query(self) -> None:
        """Read the catalog and its data path, for ``dbt debug``: no Spark is started."""
        self.handle.lakes.lake().snapshots()

    def list_schemas(self, database: str) -> list[str]:
        """The schemas of a lake, whose name dbt gives in quotes."""
        return self.handle.lakes.lake(unquoted(database)).schemas()

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Return whether a lake has a schema."""
        return fold(schema) in map(fold, self.list_schemas(database))

    def list_relations_without_caching(
        self, schema_relation: PenstockRelation
    ) -> list[PenstockRelation]:
        """The tables and views of a schema."""
        lake = self.handle.lakes.lake(schema_relation.database)
        schema = fold(schema_relation.schema or "")
        found = [(t.schema_name, t.name, RelationType.Table) for t in lake.tables()]
        found += [(v.schema_name, v.name, RelationType.View) for v in lake.views()]
        return [
            self.Relation.create(
                database=schema_relation.database,
                schema=schema_relation.schema,
                identifier=name,
                type=kind,
            )
            for of, name, kind in found
            if fold(of) == schema
        ]

    def get_columns_in_relation(self, relation: PenstockRelation) -> list[PenstockColumn]:
        """The columns of a table, a view or a temporary relation; none of what is not there."""
        handle, name = self.handle, relation.identifier or ""
        if name in handle.views and (relation.schema is None or relation.is_temporary):
            pairs = columns_of(known(handle.views[name]))
        elif relation.travel or relation.files:
            with self.connections.exception_handler(text := f"SELECT * FROM {relation.render()}"):
                pairs = columns_of(handle.run(text).frame)
        else:
            table = f"{quoted(relation.schema or 'main')}.{quoted(name)}"
            with self.connections.exception_handler(f"DESCRIBE {table}"):
                try:
                    pairs = handle.columns(relation.database, table)
                except NotFound:
                    return []
        return [PenstockColumn(column, kind) for column, kind in pairs]

    @available.parse(lambda *_, **__: True)
    def widen(self, relation: PenstockRelation, column: str, kind: str) -> bool:
        """Change a column's type where no file is written anew; whether that was possible."""
        table = relation.render()
        try:
            self.handle.run(
                f"ALTER TABLE {table} ALTER COLUMN {quoted(column)} SET DATA TYPE {kind}"
            )
        except (SchemaMismatch, UnsupportedFeature):
            return False
        return True

    def drop_relation(self, relation: PenstockRelation) -> None:
        """Drop a table or view, or forget a temporary relation."""
        if relation.is_temporary:
            self.handle.views.pop(relation.identifier or "", None)
            return
        super().drop_relation(relation)

    def expand_column_types(self, goal: Any, current: Any) -> None:
        """Texts have no length that could be too short."""

    def validate_sql(self, sql: str) -> AdapterResponse:
        """Let Spark analyse a query, without running it."""
        _, cursor = self.connections.add_select_query(sql)
        assert cursor.description is not None
        return PenstockResponse(_message="OK")

    def valid_incremental_strategies(self) -> list[str]:
        """The strategies of `incremental_strategy`."""
        return list(_STRATEGIES)

    @available.parse_none
    def fence(self, relation: PenstockRelation) -> None:
        """Let the transaction only commit where nobody else has changed a table that it read."""
        table = f"{quoted(relation.schema or 'main')}.{quoted(relation.identifier or '')}"
        self.handle.fence(relation.database, table)

    @available.parse(lambda *_, **__: False)
    def begin_batch(
        self, table: PenstockRelation, rows: PenstockRelation, query: str | None
    ) -> bool:
        """Wait until no other batch writes a table; return whether ``query``'s rows, as the
        temporary relation ``rows``, were computed meanwhile.
        """
        with self.connections.exception_handler(query or ""):
            return self.handle.begin_batch(table.render(), rows.identifier or "", query)

    @available
    @classmethod
    def key_expressions(cls, unique_key: Any) -> list[str]:
        """Return the columns or expressions of a `unique_key`."""
        return keys.expressions(unique_key)

    @available.parse_none
    def require_keys(
        self, relation: PenstockRelation, unique_key: list[str], table: PenstockRelation
    ) -> None:
        """Let a temporary relation fail, when its rows are read, at a NULL in a key of a table."""
        name = relation.identifier or ""
        columns = self.handle.views[name].columns
        unique_key = keys.present(unique_key, columns)
        if not unique_key:
            return
        query = keys.guarded(relation.render(), columns, unique_key, table.render())
        with self.connections.exception_handler(query):
            self.handle.stage(name, query)

    @available.parse_none
    def type_nulls(self, rows: PenstockRelation, table: PenstockRelation) -> None:
        """Give columns of untyped NULLs in a temporary relation the types that a table has, and
        those that it lacks the type that the lake gives them.
        """
        name = f"{quoted(table.schema or 'main')}.{quoted(table.identifier or '')}"
        with self.connections.exception_handler(f"DESCRIBE {name}"):
            schema = self.handle.transaction(table.database).table(name).schema
            views = self.handle.views
            views[rows.identifier or ""] = known(typed(views[rows.identifier or ""], schema))

    @available
    @classmethod
    def has_buckets(cls, names: list[str]) -> bool:
        """Return whether one of the partitions is a bucket, which no SQL names."""
        return partitions.has_buckets(names)

    @available.parse_none
    def delete_partitions(
        self, table: PenstockRelation, rows: PenstockRelation, names: list[str]
    ) -> None:
        """Delete the rows of a table that are in the partitions of a temporary relation's rows."""
        name = f"{quoted(table.schema or 'main')}.{quoted(table.identifier or '')}"
        with self.connections.exception_handler(f"DELETE FROM {name}"):
            target = self.handle.transaction(table.database).table(name)
            source = self.handle.views[rows.identifier or ""]
            target.delete(partitions.rows_beside(target.schema, names, source))

    @available.parse_none
    def warn_once(self, message: str) -> None:
        """Log a warning once in an invocation of dbt."""
        if message not in self._warnings:
            self._warnings.add(message)
            logger.warning(message)

    def calculate_freshness_from_metadata_batch(
        self, sources: list[Any], macro_resolver: Any = None
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Return when the rows of tables last changed, by the snapshots of their lakes."""
        with self.connections.exception_handler("freshness"):
            ages = {
                source: freshness.response(self.handle.lakes.lake(source.database), source)
                for source in sources
            }
        return [], ages

    @available.parse(lambda *_, **__: 0)
    def load_seed(self, relation: PenstockRelation, table: agate.Table) -> int:
        """Write the rows of a seed; the number of rows."""
        with self.connections.exception_handler(f"INSERT INTO {relation}"):
            return seeds.load(self.handle, relation, table)

    @available.parse(lambda *_, **__: 0)
    def write_files(self, relation: PenstockRelation, name: str, config: dict[str, Any]) -> int:
        """Write the rows of a temporary relation as the files that a model's configuration names;
        how many rows there are.
        """
        files = external.Files.of(name, config, self.config.credentials.external_root)
        with self.connections.exception_handler(f"write {files.location}"):
            return files.write(self.handle.views[relation.identifier or ""])

    def submit_python_job(
        self, parsed_model: dict[str, Any], compiled_code: str
    ) -> AdapterResponse:
        """Run a model in Python in this process, and write what it returns."""
        with self.connections.exception_handler(compiled_code):
            return python_models.run(self.handle, parsed_model, compiled_code)

    def _get_one_catalog(self, information_schema: Any, schemas: Any, used_schemas: Any) -> Any:
        wanted = {fold(schema) for schema in schemas}
        table = self._catalog(information_schema.database, lambda schema, _: fold(schema) in wanted)
        return self._catalog_filter_table(table, used_schemas)

    def _get_one_catalog_by_relations(
        self, information_schema: Any, relations: Iterable[Any], used_schemas: Any
    ) -> Any:
        wanted = {(fold(r.schema), fold(r.identifier)) for r in relations}
        table = self._catalog(
            information_schema.database, lambda schema, name: (fold(schema), fold(name)) in wanted
        )
        return self._catalog_filter_table(table, used_schemas)

    def get_catalog_for_single_relation(self, relation: PenstockRelation) -> Any:
        """What ``dbt docs`` says of one table."""
        return catalog.of_relation(self.handle.lakes.lake(relation.database), relation)

    def _catalog(self, database: str | None, wanted: catalog.Wanted) -> Any:
        return catalog.table(self.handle.lakes.lake(database), wanted)

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column."""
        return "varchar"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Decimals with a fraction are doubles, as dbt's other adapters have them."""
        import agate

        fraction = agate_table.aggregate(agate.MaxPrecision(col_idx))
        return "double" if fraction else "bigint"

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column."""
        return "bigint"

    @classmethod
    def convert_boolean_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column."""
        return "boolean"

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column."""
        return "timestamp_ntz"

    @classmethod
    def convert_date_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column."""
        return "date"

    @classmethod
    def convert_time_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column."""
        return "time"

    @available
    @classmethod
    def partitions_of(cls, option: Any, is_delta: object) -> list[str]:
        """The configured partitions: a list of columns or expressions, or dbt-bigquery's form."""
        if isinstance(option, dict):
            return partitions.time_partitions(option, columns_only=bool(is_delta))
        return cls.names_of(option, "partition_by")

    @available
    @classmethod
    def names_of(cls, names: Any, option: str) -> list[str]:
        """A configured list of columns or expressions; a text with commas is one, too."""
        if names is None:
            return []
        if isinstance(names, str):
            return [name.strip() for name in names.split(",") if name.strip()]
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
        raise DbtRuntimeError(f"{option} is a list of columns, not {names!r}")
