"""Unit tests of models: each query over rows of its test, in one session of Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.inputs.declared_columns import cast_to
from penstock.engine.inputs.pinned_tables import Pins
from penstock.engine.inputs.resolve import Reader, Views, resolve
from penstock.engine.session.spark import session_for
from penstock.engine.verifying.row_values import (
    Misfit,
    RowDifference,
    csv_rows,
    differences,
    fitted,
    inferred,
    returned,
    same,
)
from penstock.engine.verifying.unit_test_files import (
    DIRECTORY,
    WantedTests,
    bindings_of,
    find_unit_tests,
    model_of,
    text_of,
)
from penstock.errors import ArgumentError, Location, NotFound, PenstockError
from penstock.model.definition.graph import table_key
from penstock.model.definition.model import Model
from penstock.model.definition.tests import THIS, Expected, Given, TestRows, UnitTest
from penstock.model.files.yaml_file import Reading
from penstock.model.query.query import Query, of_cte
from penstock.model.script.constants import Bindings
from penstock.model.script.sources import FileSource, QuerySource, TableSource
from penstock.model.values.asset import Names, UnknownName
from penstock.spark.failures import explained
from penstock.spark.functions import run_sql
from penstock.sql.dialect import normalized, to_spark
from penstock.sql.identifiers import fold
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MORE = 100  # rows beyond those expected that are looked at


@dataclass(frozen=True, slots=True)
class UnitTestResult:
    """``state`` is ``passed``, ``failed``, ``error`` or ``skipped`` (not enabled).

    ``differences`` are by the name of a CTE, ``""`` for the query's own rows; ``surplus`` says that
    there may be more rows than were looked at.
    """

    name: str
    model: str
    location: Location
    state: str
    seconds: float = 0.0
    differences: Mapping[str, tuple[RowDifference, ...]] | None = None
    surplus: bool = False
    error: PenstockError | None = None


def run_unit_tests(
    root: Path,
    wanted: WantedTests,
    models: Sequence[Model],
    session: Callable[[], SparkSession],
    dialect: str,
) -> Iterator[UnitTestResult]:
    """The results of the wanted tests, each as it ends; without one Spark does not start.

    Raises ModelError and ArgumentError before any runs.
    """
    tests = wanted.of(find_unit_tests(root), root, models)
    return UnitTests(models, session(), root, dialect).run(tests) if tests else iter(())


@dataclass(frozen=True, slots=True)
class UnitTests:
    """Runs tests of these models; ``dialect`` is that of queries for rows."""

    models: Sequence[Model]
    session: SparkSession
    root: Path
    dialect: str

    def run(self, tests: Sequence[UnitTest]) -> Iterator[UnitTestResult]:
        """The result of each in turn; what a test raises is its result."""
        for test in tests:
            began = time.monotonic()
            found: dict[str, tuple[RowDifference, ...]] = {}
            error: PenstockError | None = None
            state, surplus = "skipped", False
            if test.enabled:
                try:
                    found, surplus = self._differences(test)
                    state = "failed" if any(found.values()) else "passed"
                except PenstockError as problem:
                    problem.location = problem.location or test.location
                    state, error = "error", problem
            seconds = time.monotonic() - began
            yield UnitTestResult(
                test.name, test.model, test.location, state, seconds, found, surplus, error
            )

    def _differences(self, test: UnitTest) -> tuple[dict[str, tuple[RowDifference, ...]], bool]:
        model = _with_query(model_of(test, self.models), test)
        bindings = bindings_of(model, test)
        session = session_for(model.query, self.session)
        found: dict[str, tuple[RowDifference, ...]] = {}
        surplus = False
        with Views(session) as views:
            for expected in test.expected:
                query = _query(model, expected)
                inputs = {self._key(each, model, query, bindings): each for each in test.given}
                query = query.without_embedded(inputs)  # rows in place of what that would give
                given = self._given(query, inputs, test, bindings, session)
                reader = Reader(Pins({}, {}), session, views, self.root)
                resolved = resolve(query, bindings, reader, given=given)
                try:
                    with explained():
                        made = resolved.df
                        if expected.cte is None:
                            made = cast_to(made, model.columns)
                        rows, more = self._compared(expected, made, session)
                except PenstockError as error:
                    raise resolved.placed(error) from error.__cause__
                found[expected.cte or ""] = rows
                surplus = surplus or more
        return found, surplus

    def _given(
        self,
        query: Query,
        inputs: Mapping[str, Given],
        test: UnitTest,
        bindings: Bindings,
        session: SparkSession,
    ) -> dict[QuerySource, DataFrame]:
        """The rows for each source of the query. Raises ArgumentError for one without rows."""
        found: dict[QuerySource, DataFrame] = {}
        for source in query.sources:
            key = _source_key(source, bindings)
            if key not in inputs:
                raise ArgumentError(
                    f"{test.name} has no rows for {key}, which the query of {test.model} reads",
                    hint="add them to its inputs; rows: [] and columns: {name: TYPE} for none",
                    location=test.location,
                )
            found[source] = self._frame(inputs[key].rows, session)
        return found

    def _key(self, given: Given, model: Model, query: Query, bindings: Bindings) -> str:
        """The source that an input names: a file as the query has it, a model's table, or a table
        by the names in force in the script.
        """
        if given.name in {_source_key(source, bindings) for source in query.sources}:
            return given.name
        if given.name == THIS:
            return table_key(model.target)
        for other in self.models:
            if given.name in (other.name, other.name.rsplit("/", 1)[-1]):
                return table_key(other.target)
        names: Names = model.query.names
        try:
            return table_key(names.resolve(tuple(given.name.split("."))))
        except UnknownName:
            return given.name

    def _frame(self, rows: TestRows, session: SparkSession) -> DataFrame:
        from pyspark.sql.types import StructField, StructType

        if rows.query is not None:
            with explained():
                return run_sql(
                    session, to_spark(normalized(rows.query, self.dialect), self.dialect)
                )
        names, values = self._values(rows)
        declared = {fold(name): kind for name, kind in rows.columns.items()}
        names = list(dict.fromkeys([*names, *rows.columns]))
        if not names:
            raise ArgumentError(
                "the columns of no rows are not known",
                hint="say them: columns: {id: INTEGER, name: VARCHAR}",
                location=rows.location,
            )
        fields = [
            StructField(
                name,
                _declared(declared[fold(name)], rows.location)
                if fold(name) in declared
                else inferred(name, [row.get(name) for row in values]),
            )
            for name in names
        ]
        made = [tuple(_fitted(row.get(f.name), f, rows.location) for f in fields) for row in values]
        return session.createDataFrame(made, StructType(fields))

    def _values(self, rows: TestRows) -> tuple[list[str], Sequence[Mapping[str, Any]]]:
        """The names of columns in order, and the rows."""
        if rows.file is not None:
            path = self._file(rows)
            text = text_of(path, rows.location)
            if path.suffix.lower() == ".csv":
                names, read = csv_rows(text)
                return list(names), read
            listed = _rows_of_yaml(text, path, rows.location)
        elif rows.csv is not None:
            names, read = csv_rows(rows.csv)
            return list(names), read
        else:
            listed = rows.rows or ()
        return list(dict.fromkeys(name for row in listed for name in row)), listed

    def _file(self, rows: TestRows) -> Path:
        """A file of rows: beside the test, in tests/fixtures (dbt's), or below the project."""
        name = rows.file or ""
        places = (Path(rows.location.path).parent, self.root / DIRECTORY / "fixtures", self.root)
        for place in places:
            for path in (place / name, place / f"{name}.csv"):
                if path.is_file():
                    return path
        raise NotFound(
            f"there is no file of rows {name}",
            hint=f"looked in {', '.join(str(place) for place in places)}",
            location=rows.location,
        )

    def _compared(
        self, expected: Expected, df: DataFrame, session: SparkSession
    ) -> tuple[tuple[RowDifference, ...], bool]:
        schema: StructType = df.schema
        fields = {fold(field.name): field for field in schema.fields}
        if expected.rows.query is not None:
            wanted = self._frame(expected.rows, session)
            rows = [row.asDict() for row in wanted.limit(_MORE).collect()]
            names = list(wanted.columns)
        else:
            names, listed = self._values(expected.rows)
            rows = [dict(row) for row in listed]
        for name in names:
            if fold(name) not in fields:
                raise ArgumentError(
                    f"the query makes no column {name}",
                    hint=f"it makes {', '.join(schema.names)}",
                    location=expected.rows.location,
                )
        wanted_rows = [
            {
                fields[fold(name)].name: _fitted(value, fields[fold(name)], expected.rows.location)
                for name, value in row.items()
            }
            for row in rows
        ]
        looked_at = [fields[fold(n)].name for n in names] if expected.partial else schema.names
        limit = len(rows) + _MORE
        collected = df.limit(limit).collect()
        actual = [
            {
                field.name: returned(value, field.dataType)
                for field, value in zip(schema.fields, row, strict=True)
            }
            for row in collected
        ]
        shown = list(looked_at or schema.names)
        return differences(wanted_rows, actual, shown, same), len(collected) == limit


def _rows_of_yaml(text: str, path: Path, location: Location) -> tuple[Mapping[str, Any], ...]:
    from yaml.constructor import ConstructorError

    reading = Reading(path, "unit-test")
    root = reading.root(text)
    try:
        listed = None if root is None else reading.value(root)
    except ConstructorError as error:
        reading.refuse_tag(error)
    for found in reading.findings:
        raise ArgumentError(
            f"{path.name} is not YAML of rows: {found.message}, at {found.location}",
            hint=found.hint,
            location=location,
        )
    if not isinstance(listed, list) or not all(isinstance(row, Mapping) for row in listed):
        raise ArgumentError(
            f"{path.name} is not a list of rows",
            hint="begin each row with a dash: - {id: 1, name: a}",
            location=location,
        )
    return tuple(listed)


def _with_query(model: Model, test: UnitTest) -> Model:
    if model.python is not None:
        raise ArgumentError(
            f"{model.name} is a step in Python, which unit tests do not run",
            hint="test its main in Python, with pytest for example, or take the test away",
            location=test.location,
        )
    if model.query.manual:
        raise ArgumentError(
            f"{model.name} is manual: it has statements, and no query to test",
            hint="let Penstock write the table, or take the test away",
            location=test.location,
        )
    return model


def _query(model: Model, expected: Expected) -> Query:
    if expected.cte is None:
        return model.query
    query = of_cte(model.query, expected.cte)
    if query is None:
        raise ArgumentError(
            f"the query of {model.name} has no common table expression {expected.cte}",
            hint="name one of its WITH, or a temporary table of the script",
            location=expected.rows.location,
        )
    return query


def _source_key(source: QuerySource, bindings: Bindings) -> str:
    if isinstance(source, TableSource):
        return table_key(source.table)
    return (
        str(source.path.evaluate(bindings)) if isinstance(source, FileSource) else source.function
    )


def _declared(kind: str, location: Location) -> Any:
    from pyspark.sql.types import DataType

    try:
        return DataType.fromDDL(spark_type(kind))
    except Exception:  # whatever the parser says of it
        raise ArgumentError(
            f"{kind!r} is not a type", hint="write a type of DuckDB's", location=location
        ) from None


def _fitted(value: object, field: Any, location: Location) -> Any:
    try:
        return fitted(value, field.dataType)
    except Misfit as error:
        raise ArgumentError(
            f"column {field.name}: {error}",
            hint="correct the value, or the type in columns",
            location=location,
        ) from None
