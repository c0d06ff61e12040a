"""Statements of a script, run by Penstock: by its SQL, or by its methods and DataFrames."""

from __future__ import annotations

import ast
import datetime as dt
import re
from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from penstock.errors import UnsupportedFeature
from penstock.lakes.lake import Lake
from penstock.spark.functions import arrow_frame
from tests.lakes.differential.places import Home
from tests.lakes.differential.written.model import Effect
from tests.lakes.differential.written.script import Step
from tests.lakes.differential.written.shown import of_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lakes.transaction import Transaction, TransactionTable

# Statements whose expressions are Spark's own; definitions have the types that DuckDB has.
_SPEAKS_SPARK = re.compile(r"(?i)\s*(INSERT|UPDATE|DELETE|MERGE)\b")
_COUNTS = "num_affected_rows"


class Penstock:
    """A lake that is attached as long as Penstock is at it, with the transaction that is open."""

    def __init__(self, spark: SparkSession, home: Home, inline: int | None) -> None:
        self._spark, self._home, self._inline = spark, home, inline
        self._lake: Lake | None = None
        self._transaction: Transaction | None = None

    @property
    def lake(self) -> Lake:
        if self._lake is None:
            options: dict[str, Any] = {"name": "lk"}  # as the scripts call it
            name = "data_inlining_row_limit"
            if self._inline is not None and name in signature(Lake.attach).parameters:
                options[name] = self._inline
            self._lake = Lake.attach(
                self._home.uri, data_path=self._home.data_path, spark=self._spark, **options
            )
        return self._lake

    def close(self) -> None:
        lake, self._lake = self._lake, None
        if lake is not None:
            lake.close()

    def latest(self) -> int:
        return self.lake.catalog.latest().id

    def run(self, step: Step, effect: Effect | None, created: pa.Table | None) -> int | None:
        """The number of rows touched, if Penstock reports it. ``created`` is an empty table."""
        if step.by == "methods":
            return self._by_methods(step, effect, created)
        return self._by_sql(step.text.replace("{dir}", str(self._home.files)))

    def answer(self, step: Step) -> object:
        """The rows of a query of numbers, or all of a table."""
        if step.shows is not None:
            if self._transaction is not None:
                return of_spark(self._transaction.table(step.shows).to_df())
            return of_spark(self.lake.sql(f"SELECT * FROM {step.shows}"))
        df = (self._transaction or self.lake).sql(spark_text(step.text))
        return sorted(number for (number,) in df.collect())

    def rollback(self, by: str) -> None:
        if by == "methods":
            if self._transaction is not None:
                self._transaction.rollback()
                self._transaction = None
        else:
            self._by_sql("ROLLBACK")

    # SQL

    def _by_sql(self, text: str) -> int | None:
        # Defaults in definitions are literals as Spark reads them.
        escaped = text.replace("\\", "\\\\")
        df = self.lake.sql(spark_text(text) if _SPEAKS_SPARK.match(text) else escaped)
        if _COUNTS not in df.columns:
            return None
        return int(df.collect()[0][_COUNTS])

    # Methods

    def _by_methods(
        self, step: Step, effect: Effect | None, created: pa.Table | None
    ) -> int | None:
        word = step.text.split(None, 1)[0].upper()
        control = _CONTROL.get(word)
        if control is not None:
            control(self)
            return None
        if word == "CALL":
            self.call(step.text.replace("{dir}", str(self._home.files)))
            return None
        if word in _ALSO_BY_SQL and created is None:
            (self._transaction or self.lake).sql(step.text)
            return None
        act = _METHODS.get(word)
        if act is None or step.table is None:
            raise UnsupportedFeature(f"no method for {step.text}", hint="the harness has none")
        if self._transaction is not None:
            return act(self, self._transaction.table(step.table), step, effect, created)
        transaction = self.lake.transaction()
        try:
            result = act(self, transaction.table(step.table), step, effect, created)
        except BaseException:
            transaction.rollback()
            raise
        transaction.commit()
        return result

    def begin(self) -> None:
        self._transaction = self.lake.transaction()

    def commit(self) -> None:
        assert self._transaction is not None
        transaction, self._transaction = self._transaction, None
        transaction.commit()

    def abort(self) -> None:
        self.rollback("methods")

    def frame(self, rows: pa.Table) -> DataFrame:
        import pyarrow as pa

        df = arrow_frame(self._spark, rows)
        plain = {
            field.name: df[field.name].cast("timestamp_ntz")
            for field in rows.schema
            if pa.types.is_timestamp(field.type) and field.type.tz is None
        }
        return (df.withColumns(plain) if plain else df).coalesce(1)

    def create(self, table: TransactionTable, step: Step, _: Any, created: pa.Table | None) -> None:
        assert created is not None
        table.append(self.frame(created))

    def insert(
        self, table: TransactionTable, step: Step, effect: Effect | None, _: Any
    ) -> int | None:
        assert effect is not None
        assert effect.inserted is not None
        replaced = _REPLACES.search(step.text)
        if replaced is not None:
            column, rows = replaced["column"], self.frame(effect.inserted)
            if column is None or effect.inserted.num_rows % 2:
                table.overwrite(rows, spark_text(replaced["where"]))
            else:
                value = effect.inserted.column(column)[0].as_py()
                table.replace_slice(rows, column, value, partition_by=())
            return None
        return table.append(self.frame(effect.inserted)).rows_inserted

    def update(self, table: TransactionTable, step: Step, *_: Any) -> int:
        match = _parsed(_UPDATE, step)
        where = spark_text(match["where"])
        return table.update(_assigned(match["set"]), where).rows_updated

    def delete(self, table: TransactionTable, step: Step, *_: Any) -> int:
        where = _parsed(_DELETE, step)["where"]
        return table.delete(where and spark_text(where)).rows_deleted

    def merge(self, table: TransactionTable, step: Step, *_: Any) -> None:
        by_key = _BY_KEY.fullmatch(step.text)
        if by_key is not None:
            rows = spark_text(f"SELECT * FROM {by_key['source']}")
            table.merge(self._spark.sql(rows), ["i"])
            return
        match = _parsed(_MERGE, step)
        builder = table.merge_into(self._spark.sql(match["source"]), match["on"])
        for clause in _CLAUSE.finditer(step.text):
            kind = " ".join(clause["kind"].split()).lower().replace(" ", "_")
            condition = clause["condition"] and spark_text(clause["condition"])
            if clause["act"] == "DELETE":
                builder = getattr(builder, f"when_{kind}_delete")(condition)
            elif clause["set"]:
                values = _assigned(clause["set"])
                builder = getattr(builder, f"when_{kind}_update")(condition, values)
            else:
                names = [name.strip() for name in clause["names"].split(",")]
                parts = dict(zip(names, _parts(clause["values"]), strict=True))
                assignments = {name: spark_text(value) for name, value in parts.items()}
                builder = builder.when_not_matched_insert(condition, assignments)
        builder.execute()

    def call(self, text: str) -> None:
        """A function of maintenance, as a method of the lake."""
        match = re.fullmatch(r"(?is)CALL\s+ducklake_(\w+)\('lk'(.*)\)\s*", text)
        if match is None:
            raise UnsupportedFeature(f"no method for {text}", hint="the harness has none")
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for part in _parts(match[2].lstrip(", ")):
            name, arrow, value = part.partition("=>")
            argument = _told((value if arrow else name).strip())
            if arrow:
                named[name.strip()] = argument
            else:
                positional.append(argument)
        function = getattr(self.lake, match[1], None)
        if function is None:
            raise UnsupportedFeature(f"no method {match[1]}", hint="the harness has none")
        function(*positional, **named)


_UPDATE = re.compile(r"(?s)UPDATE \S+ SET (?P<set>.*) WHERE (?P<where>.*)")
_DELETE = re.compile(r"(?s)(?:DELETE FROM|TRUNCATE TABLE) \S+(?: WHERE (?P<where>.*))?")
_MERGE = re.compile(
    r"(?s)MERGE INTO \S+ AS t USING \((?P<source>SELECT .*?\) AS r\(n\))\) AS s "
    r"ON (?P<on>\S+ = \S+).*"
)
_BY_KEY = re.compile(
    r"(?s)MERGE INTO \S+ AS t USING (?P<source>\(VALUES .*?\) AS s\([^)]*\)) ON t\.i = s\.i .*"
)
_REPLACES = re.compile(r"(?s) REPLACE WHERE (?P<where>true|(?P<column>\w+) = .*?) VALUES ")
_CLAUSE = re.compile(
    r"(?s)WHEN (?P<kind>(?:NOT )?MATCHED(?: BY SOURCE)?)(?: AND (?P<condition>.*?))? THEN "
    r"(?P<act>DELETE|UPDATE SET (?P<set>.*?)|INSERT \((?P<names>.*?)\) VALUES \((?P<values>.*?)\))"
    r"(?= WHEN |$)"
)


def _parsed(pattern: re.Pattern[str], step: Step) -> re.Match[str]:
    match = pattern.fullmatch(step.text)
    if match is None:
        raise UnsupportedFeature(f"no method for {step.text}", hint="the harness has none")
    return match


def _assigned(text: str) -> dict[str, object]:
    name, _, value = text.partition(" = ")
    return {name: spark_text(value)}


def _parts(text: str) -> list[str]:
    """What commas separate, outside of brackets and strings."""
    parts, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == "'"
        depth += 0 if quoted else (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def _told(text: str) -> Any:
    if text == "now()":
        return dt.datetime.now(dt.UTC)
    return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))


_STRING = re.compile(r"'((?:[^']|'')*)'")
_REWRITES = (
    (re.compile(r"\bAS TIMESTAMP\)"), lambda m: "AS TIMESTAMP_NTZ)"),
    (re.compile(r"\bAS TIMESTAMPTZ\)"), lambda m: "AS TIMESTAMP)"),
    (re.compile(r"MAP \{([^{}]*)\}"), lambda m: f"map({m[1].replace(':', ',')})"),
    (re.compile(r"\{([^{}]*)\}"), lambda m: f"named_struct({m[1].replace(':', ',')})"),
    (re.compile(r"\[([^\[\]]*)\]"), lambda m: f"array({m[1]})"),
)


def spark_text(text: str) -> str:
    """The same in Spark's dialect, for the expressions that `generate` makes."""
    strings: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        strings.append(match[1].replace("''", "'"))
        return f"\0{len(strings) - 1}\0"

    text = _STRING.sub(placeholder, text)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return re.sub("\0(\\d+)\0", lambda m: _literal(strings[int(m[1])]), text)


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_Act = Callable[[Penstock, Any, Step, Effect | None, Any], int | None]
_METHODS: Mapping[str, _Act] = {
    "CREATE": Penstock.create,
    "INSERT": Penstock.insert,
    "UPDATE": Penstock.update,
    "DELETE": Penstock.delete,
    "TRUNCATE": Penstock.delete,
    "MERGE": Penstock.merge,
}
_ALSO_BY_SQL = frozenset({"ALTER", "DROP", "CREATE"})
_CONTROL: Mapping[str, Callable[[Penstock], None]] = {
    "BEGIN": Penstock.begin,
    "COMMIT": Penstock.commit,
    "ROLLBACK": Penstock.abort,
}
