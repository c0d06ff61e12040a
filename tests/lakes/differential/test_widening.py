"""Columns whose types are changed: rows of before and after, read and pruned by both.

All pairs that are allowed, files and inlined rows, whoever changes the type.

Tests ``lakes/reading/conversions/widening.py``, ``sql/predicate.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.files import DataFile
from penstock.lakes.format.schema import Column
from penstock.lakes.format.values.bounds import parse
from penstock.lakes.lake import Lake
from penstock.lakes.reading.conversions.widening import DIGITS, can_become
from penstock.lakes.staging import TransactionTable
from penstock.sql.predicate import of_where
from penstock.sql.text import Predicate, all_of
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential import typed
from tests.lakes.differential.test_types import run
from tests.lakes.differential.typed import differences

pytestmark = pytest.mark.spark

# Of each type of DuckDB's the format's name and two values at its ends.
TYPES = {
    "BOOLEAN": ("boolean", "true", "false"),
    "TINYINT": ("int8", "-128", "127"),
    "SMALLINT": ("int16", "-32768", "32767"),
    "INTEGER": ("int32", "-2147483648", "16777217"),
    "BIGINT": ("int64", "-9223372036854775808", "1152921573326323713"),
    "HUGEINT": ("int128", "-9007199254740992", "36028797018963968"),
    "UTINYINT": ("uint8", "0", "255"),
    "USMALLINT": ("uint16", "0", "65535"),
    "UINTEGER": ("uint32", "0", "4294967295"),
    "UBIGINT": ("uint64", "9007199254740993", "18446744073709551615"),
    "UHUGEINT": ("uint128", "0", "36028797018963968"),
    "FLOAT": ("float32", "1.1", "-inf"),
    "DOUBLE": ("float64", "-0.1", "nan"),
    "DECIMAL(20,0)": ("decimal(20,0)", "-1", "99999999999999999999"),
    "DECIMAL(20,3)": ("decimal(20,3)", "-99999999999999999.999", "0.001"),
    "DECIMAL(4,1)": ("decimal(4,1)", "-999.9", "0.1"),
    "DECIMAL(9,3)": ("decimal(9,3)", "0.001", "-123456.789"),
    "DECIMAL(18,3)": ("decimal(18,3)", "900719925474099.267", "-16777217.005"),
    "DECIMAL(18,18)": ("decimal(18,18)", "0.123456789012345678", "-0.999999999999999999"),
    "DECIMAL(38,2)": ("decimal(38,2)", "-9e30", "0.01"),
    "DECIMAL(38,10)": ("decimal(38,10)", "0.0049999999", "-0.005"),
    "DATE": ("date", "1969-12-31", "2020-02-29"),
    "TIME": ("time", "01:02:03", "23:59:59.5"),
    "TIMESTAMP": ("timestamp", "1969-12-31 23:59:59.999999", "2020-01-01 10:00:00"),
    "TIMESTAMP_S": ("timestamp_s", "1960-01-01 00:00:01", "2020-01-01 10:00:00"),
    "TIMESTAMP_MS": ("timestamp_ms", "1960-01-01 00:00:00.001", "2020-01-01 10:00:00"),
    "TIMESTAMP_NS": ("timestamp_ns", "1960-01-01 00:00:01", "2020-01-01 10:00:00"),
    "TIMESTAMPTZ": ("timestamptz", "1960-01-01 00:00:01+00", "2020-01-01 10:00:00+00"),
    "INTERVAL": ("interval", "1 day", "2 months"),
    "VARCHAR": ("varchar", "a", ""),
    "BLOB": ("blob", "a", "b"),
    "UUID": (
        "uuid",
        "00000000-0000-0000-0000-000000000001",
        "ffffffff-0000-0000-0000-000000000001",
    ),
    "JSON": ("json", "1", "2"),
}
_WIDE = ("int128", "uint128")


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if getattr(request, "param", "sqlite") == "sqlite":
        return Place(f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}", f"{tmp_path}/data/")
    return Place(str(request.getfixturevalue("postgres_uri")), f"{tmp_path}/data/")


def _kind(name: str) -> str:
    return TYPES[name][0]


def _digits(name: str) -> tuple[int, int] | None:
    """Before the point and after it."""
    kind = parse(_kind(name))
    if kind.precision is not None and kind.scale is not None:
        return kind.precision - kind.scale, kind.scale
    return (DIGITS[kind.name], 0) if kind.name in DIGITS else None


def _is_finer(old: str, new: str) -> bool:
    if old == "DATE":
        return new in {"TIMESTAMP", "TIMESTAMP_S"}
    have = _digits(old)
    if have is None or (old in _LONG_DECIMALS and new in {"FLOAT", "DOUBLE"}):
        return False
    if new in {"FLOAT", "DOUBLE"}:
        return True
    want = _digits(new) if new.startswith("DECIMAL") else None
    if want is None or have[0] > want[0]:
        return False
    return have[1] <= want[1] or sum(want) == 38  # which it rounds to


_LONG_DECIMALS = ("DECIMAL(20,0)", "DECIMAL(20,3)", "DECIMAL(38,2)", "DECIMAL(38,10)")
PAIRS = [
    (old, new)
    for old in TYPES
    for new in TYPES
    if old != new and can_become(_kind(old), _kind(new))
]
# What DuckDB changes and answers wrongly by, though it reads all rows: to finer types.
FINER = [
    (old, new)
    for old in TYPES
    for new in TYPES
    if (old, new) not in PAIRS and old != new and _is_finer(old, new)
]
# What it changes and then cannot read, or not all of, and what becomes JSON.
REFUSED = {
    *(("BOOLEAN", new) for new in TYPES if "INT" in new and "V" not in new),
    *(
        (old, new)
        for old in ("HUGEINT", "UHUGEINT")
        for new in ("FLOAT", "DOUBLE", "DECIMAL(38,2)", "DECIMAL(38,10)")
    ),
    *((old, new) for old in _LONG_DECIMALS for new in ("FLOAT", "DOUBLE")),
    *((old, "TIMESTAMP_NS") for old in ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS")),
    ("DATE", "TIMESTAMP_MS"),
    *((old, "JSON") for old in TYPES if old != "JSON"),
}


def test_only_what_duckdb_changes(place: Place) -> None:
    theirs = set()
    with closing(duck.attach(place.uri, place.data_path)) as connection:
        for old in TYPES:
            for new in TYPES:
                if old != new and _changes(connection, old, new):
                    theirs.add((old, new))
    assert {*PAIRS, *FINER, *REFUSED} == theirs
    assert len(theirs) == len(PAIRS) + len(FINER) + len(REFUSED)


def _changes(connection: duckdb.DuckDBPyConnection, old: str, new: str) -> bool:
    connection.execute("BEGIN")
    connection.execute(f"CREATE TABLE probe(c {old})")
    try:
        connection.execute(f"ALTER TABLE probe ALTER c SET TYPE {new}")
    except duckdb.Error:
        return False
    finally:
        connection.execute("ROLLBACK")
    return True


@pytest.mark.parametrize(
    ("place", "by", "inline"),
    [
        ("sqlite", "penstock", 0),
        pytest.param("sqlite", "duckdb", 10, marks=pytest.mark.extended),
        pytest.param("postgres", "penstock", 0, marks=[pytest.mark.postgres, pytest.mark.extended]),
        pytest.param("postgres", "duckdb", 10, marks=pytest.mark.postgres),
    ],
    indirect=["place"],
)
def test_rows_of_both_types(place: Place, spark: SparkSession, by: str, inline: int) -> None:
    """Two tables, as Spark writes no files of one with 128 bits.

    Files are read by the types in them, whoever changed that of the column: where DuckDB does, they
    have the pairs that Penstock refuses.
    """
    last, changed = 0, PAIRS if by == "penstock" else [*PAIRS, *FINER] if inline else FINER
    for name, pairs in _tables(changed):
        if not pairs:
            continue
        columns = ", ".join(f"c{at} {old}" for at, (old, _) in enumerate(pairs))
        adds = [
            f"ALTER TABLE {name} ADD COLUMN d{at} {old} DEFAULT '{TYPES[old][2]}'"
            for at, (old, new) in enumerate(pairs)
            if new != "TIMESTAMPTZ"
        ]
        run(
            place,
            f"CALL lk.set_option('data_inlining_row_limit', {inline})",
            f"CREATE TABLE {name}(k INTEGER, {columns})",
            *(_insert(name, k, [TYPES[old][1 + k] for old, _ in pairs]) for k in (0, 1)),
            f"BEGIN; {'; '.join(adds)}; COMMIT",
        )
        changes = [
            f"ALTER TABLE {name} ALTER {letter}{at} SET DATA TYPE {new}"
            for at, (_, new) in enumerate(pairs)
            for letter in ("c", "d")
            if letter == "c" or new != "TIMESTAMPTZ"
        ]
        if by == "duckdb":
            run(place, f"BEGIN; {'; '.join(changes)}; COMMIT")
        else:
            with Lake.attach(place.uri, spark=spark) as lake, lake.transaction() as transaction:
                for change in changes:
                    transaction.sql(change)
        news = [_insert(name, 2 + k, [TYPES[new][1 + k] for _, new in pairs]) for k in (0, 1)]
        if name == "t":
            with Lake.attach(place.uri, spark=spark) as lake:
                lake.sql(news[0])
        else:
            run(place, news[0])
        last = run(place, news[1], f"DELETE FROM {name} WHERE k = 1")
        assert _feeds(place, spark, name, last) == []
        if not inline:
            assert list(_lost(place, name, pairs)) == []
        if by == "penstock":
            assert list(_wrong_by_duckdb(place, name, pairs)) == []
    assert differences(place, spark) == []


def _tables(all_: list[tuple[str, str]]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    yield "t", [pair for pair in all_ if _kind(pair[1]) not in _WIDE]
    yield "h", [pair for pair in all_ if _kind(pair[1]) in _WIDE]


def _insert(name: str, k: int, values: Sequence[str]) -> str:
    """Numbers are written as such: Penstock takes no text for them."""
    shown = [f"'{value}'" if _is_text(value) else value for value in values]
    columns = ", ".join(f"c{at}" for at in range(len(values)))
    return f"INSERT INTO {name}(k, {columns}) VALUES ({k}, {', '.join(shown)})"


def _is_text(value: str) -> bool:
    return value in {"nan", "-inf"} or value.count("-") > 1 or ":" in value


_FEED = (Column("snapshot_id", "int64"), Column("rowid", "int64"), Column("change_type", "varchar"))


def _feeds(place: Place, spark: SparkSession, name: str, last: int) -> list[str]:
    """Whether the two feeds of all changes differ."""
    with Lake.attach(place.uri, spark=spark) as lake:
        first = lake.catalog.table("main", name, last).begin_snapshot or 0
        columns = (*_FEED, *lake.table(name).schema.columns)
        mine = typed.spark_rows(lake.table(name).changes(first, last), columns)
    with closing(duck.attach(place.uri)) as connection:
        connection.execute("SET threads = 1")
        theirs = typed.duck_feed(connection, name, first, last, columns)
    return [] if mine == theirs else [typed.shown(mine, theirs)]


_TOGETHER = 60  # conditions of one look-up: SQLite takes some hundreds


def _lost(place: Place, name: str, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Conditions that a row satisfies and that prune its file. Each row is in a file of its own.

    A file that stays for many conditions at once stays for each of them.
    """
    columns = [f"c{at}" for at in range(len(pairs))]
    shown = ", ".join(f"{column}::VARCHAR" for column in columns)
    with closing(duck.attach(place.uri)) as connection:
        rows = connection.execute(f"SELECT k, {shown} FROM {name} ORDER BY k").fetchall()
    with Lake.attach(place.uri) as lake, lake.transaction() as transaction:
        table = transaction.table(name)
        files = sorted(table.files().files, key=lambda file: file.begin_snapshot or 0)
        for (_, *values), file in zip(rows, files, strict=True):
            conditions = [
                f"{column} {sign} {_literal(value, new)}"
                for column, value, (_, new) in zip(columns, values, pairs, strict=True)
                if value not in {"nan", "inf", "-inf"}
                for sign in ("=", "<=", ">=")
            ]
            for start in range(0, len(conditions), _TOGETHER):
                part = conditions[start : start + _TOGETHER]
                if not _keeps(table, file, part):
                    pruning = [where for where in part if not _keeps(table, file, [where])]
                    yield f"{pruning or part}, of {pairs}"


def _literal(value: str, kind: str) -> str:
    if kind in _NTZ:
        return f"TIMESTAMP_NTZ '{value}'"
    return f"'{value}'" if kind == "TIMESTAMPTZ" else value


def _keeps(table: TransactionTable, file: DataFile, conditions: Sequence[str]) -> bool:
    known = [of_where(where).condition for where in conditions]
    together = Predicate(all_of([condition for condition in known if condition is not None]), "UTC")
    return file.path in {each.path for each in table.files(together).files}


def _wrong_by_duckdb(place: Place, name: str, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Filters that DuckDB pushes down to older rows with another answer than to their values."""
    with closing(duck.attach(place.uri)) as connection:
        for at, (old, new) in enumerate(pairs):
            values = [f"CAST('{value}' AS {old})" for value in TYPES[old][1:]]
            values += [f"CAST('{value}' AS {new})" for value in TYPES[new][1:]]
            filters = [
                f"c{at} {sign} CAST({value} AS {new})"
                for value in values
                if (old, new) != ("FLOAT", "DOUBLE")  # the format's own, and wrong in DuckDB
                for sign in ("=", "<")
            ]
            pushed = ", ".join(
                f"(SELECT count(*) FROM {name} WHERE {condition})" for condition in filters
            )
            counted = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in filters)
            if filters:
                mine = connection.execute(f"SELECT {counted} FROM {name}").fetchall()
                if connection.execute(f"SELECT {pushed}").fetchall() != mine:
                    yield f"{old} to {new}"


def test_a_finer_type_is_answered_wrongly_by_duckdb(place: Place, spark: SparkSession) -> None:
    """Why such changes are refused. Where DuckDB makes one, Penstock's answer is right."""
    run(
        place,
        "CREATE TABLE t(c INTEGER)",
        "INSERT INTO t VALUES (1)",
        "ALTER TABLE t ALTER c SET TYPE DOUBLE",
        "INSERT INTO t VALUES (1.4)",
    )
    where = "SELECT c FROM t WHERE c < CAST(1.4 AS DOUBLE)"
    assert duck.rows(place.uri, where) == []  # 1.5.5; once it is [(1.0,)], these can be allowed
    with Lake.attach(place.uri, spark=spark) as lake:
        assert lake.sql(where).collect() == [(1.0,)]
        with pytest.raises(UnsupportedFeature, match="int32 and cannot become float64"):
            lake.sql("CREATE TABLE u (c INTEGER); ALTER TABLE u ALTER c SET DATA TYPE DOUBLE")


_NTZ = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"}


def test_what_a_table_is_partitioned_by(place: Place) -> None:
    run(
        place,
        "CREATE TABLE t(a UINTEGER, b INTEGER)",
        "ALTER TABLE t SET PARTITIONED BY (bucket(4, a), b)",
    )
    with Lake.attach(place.uri) as lake:
        with pytest.raises(UnsupportedFeature, match=r"'a' is uint32.*partitioned by.*int64"):
            lake.sql("ALTER TABLE t ALTER a SET DATA TYPE BIGINT")
        lake.sql("ALTER TABLE t ALTER b SET DATA TYPE BIGINT")


def test_the_slice_of_a_value_that_is_written_otherwise_since(
    place: Place, spark: SparkSession
) -> None:
    """The catalog has 1.5 of the files before the change, 1.500 of those after it."""
    run(
        place,
        "CREATE TABLE t(p DECIMAL(4,1), k INTEGER)",
        "ALTER TABLE t SET PARTITIONED BY (p)",
        "INSERT INTO t VALUES (1.5, 1), (2.5, 2)",
        "ALTER TABLE t ALTER p SET TYPE DECIMAL(9,3)",
        "INSERT INTO t VALUES (1.5, 3)",
    )
    with Lake.attach(place.uri, spark=spark) as lake:
        rows = spark.sql("SELECT CAST(1.5 AS DECIMAL(9,3)) AS p, 4 AS k")
        lake.table("t").replace_slice(rows, "p", Decimal("1.500"))
    assert duck.rows(place.uri, "SELECT k FROM t") == [(2,), (4,)]


def test_files_of_the_type_before_are_rewritten(place: Place, spark: SparkSession) -> None:
    changes = [
        ("BIGINT", "FLOAT", "1152921573326323713"),
        ("BIGINT", "DOUBLE", "9007199254740993"),
        ("INTEGER", "DECIMAL(18,3)", "16777217"),
        ("DECIMAL(9,3)", "DECIMAL(38,2)", "0.005"),
        ("DATE", "TIMESTAMP", "'2020-02-29'"),
    ]
    columns = ", ".join(f"c{at} {old}" for at, (old, _, _) in enumerate(changes))
    values = ", ".join(value for *_, value in changes)
    run(
        place,
        f"CREATE TABLE t(k INTEGER, {columns})",
        f"INSERT INTO t VALUES (1, {values}), (2, {values})",
        *(f"ALTER TABLE t ALTER c{at} SET TYPE {new}" for at, (_, new, _) in enumerate(changes)),
        "DELETE FROM t WHERE k = 1",
        "CREATE TABLE u(k INTEGER, c TIMESTAMP)",
        "INSERT INTO u VALUES (1, '2020-01-01'), (2, '2020-01-01')",
        "ALTER TABLE u ALTER c SET TYPE TIMESTAMPTZ",
        "DELETE FROM u WHERE k = 1",
    )
    before = duck.rows(place.uri, "FROM t")
    with Lake.attach(place.uri, spark=spark) as lake:
        (done,) = lake.rewrite_data_files("t", delete_threshold=0)
        assert done.files_created == 1
        with pytest.raises(UnsupportedFeature, match="compacted has values of timestamp"):
            lake.rewrite_data_files("u", delete_threshold=0)
    assert duck.rows(place.uri, "FROM t") == before
    assert differences(place, spark) == []


def test_what_hangs_on_a_zone_is_refused(place: Place) -> None:
    run(place, "CREATE TABLE t(a DATE DEFAULT '2020-01-01', b TIMESTAMP)")
    with Lake.attach(place.uri) as lake:
        with pytest.raises(UnsupportedFeature, match="says no time zone"):
            lake.sql("ALTER TABLE t ALTER a SET DATA TYPE TIMESTAMPTZ")
        with pytest.raises(UnsupportedFeature, match="in the transaction that wrote rows"):
            lake.sql(
                "BEGIN; INSERT INTO t (b) VALUES ('2020-01-01'); "
                "ALTER TABLE t ALTER b SET DATA TYPE TIMESTAMPTZ; COMMIT"
            )
        lake.sql("ALTER TABLE t ALTER b SET DATA TYPE TIMESTAMPTZ")
