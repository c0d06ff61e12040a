"""Slices of one model in one query: whether that is certain to give the same rows, and the query.

A SELECT says which slice it is for in one place, a condition of its WHERE (`slice_condition`), or
reads a query of a WITH or FROM that does. Its rows then belong to a slice each, which one more
column says, from the bottom up to the outermost SELECT. Nothing may look across slices: the column
is added to GROUP BY and to the PARTITION BY of windows, and relations that have slices are joined
by it; LIMIT and the like are refused. In doubt slices are made one by one.

Files whose path the slice is part of say it as well: those of all slices are read at once, and one
more column of theirs is the slice that each file is of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from penstock.model.definition.model import Model
from penstock.model.query.analysis import Part
from penstock.model.query.query import Query
from penstock.model.query.render import RenderedQuery, UnsupportedSql, trial_names
from penstock.model.script.arguments import PARTITION, PARTITION_END, PARTITION_START
from penstock.model.script.constants import ArgumentValue, Constant, PartitionValue
from penstock.model.script.file_uris import depends_on_slice
from penstock.model.script.sources import FileSource, QuerySource
from penstock.model.slicing.slice_column import Reading, Scope, SlicedSelect
from penstock.model.slicing.slice_condition import NotJoint, SliceCondition, SliceFilter
from penstock.model.time.partition import TIME_KINDS
from penstock.model.time.time_macros import TOKEN
from penstock.model.values import data_test
from penstock.model.values.asset import table_of
from penstock.sql.determinism import volatile_calls
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import fold
from penstock.sql.query.edits import Edit, edited
from penstock.sql.query.nesting import Unclear
from penstock.sql.query.reading import read_query
from penstock.sql.text import Unreadable, parse_query
from penstock.sql.tokens import ARGUMENT, MARKER, STRING, WORD, Token, tokenize

# Tests that rows pass together only if those of each slice do.
MONOTONE = (
    data_test.UniqueTest,
    data_test.NotNullTest,
    data_test.AcceptedValuesTest,
    data_test.AcceptedRangeTest,
    data_test.RelationshipsTest,
)
_OF_FILES = "penstock_files_slice_"  # with a number
_NO_COLUMNS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Joint:
    """A query that may be asked for many slices. ``conditions`` are all that say the slice;
    ``trials`` are queries with the expression of each alone, to learn its type.
    """

    sql: str
    conditions: tuple[SliceCondition, ...]
    trials: tuple[str, ...]
    selects: tuple[SlicedSelect, ...]
    fixed: tuple[Edit, ...]

    def query(self, column: str, told: Sequence[SliceFilter]) -> str:
        """The query with its slice as the last column; ``told`` is for each of ``conditions``."""
        left, edits = iter(told), list(self.fixed)
        for select in self.selects:
            own = None if select.condition is None else next(left)
            edits += select.edits(own, select.name or column)
        return edited(self.sql, edits).text


def are_monotone(model: Model) -> bool:
    """Return whether rows of many slices that pass its tests together pass them slice by slice."""
    return all(isinstance(test, MONOTONE) for test in model.data_tests)


def why_apart(model: Model) -> str | None:
    """Return why the slices of a model are made one by one; None where they may
    be made together.
    """
    try:
        _require(model)
        names = trial_names(model.query.sources)
        columns = slice_columns(model.query, names)
        rendered = model.query.render(names)
        return _why_not(rendered, columns, translated=model.query.dialect != SPARK)
    except NotJoint as error:
        return str(error)
    except UnsupportedSql as error:
        return f"Penstock cannot translate its query: {error}"
    except Unreadable as error:
        return f"Penstock's parser does not understand its query{error}"


_LONG = 80  # characters that a message quotes


def _why_not(
    rendered: RenderedQuery, columns: Mapping[str, str], *, translated: bool
) -> str | None:
    """Return why a query is not joint. What nobody wrote, or is long, is said by its line in the
    file.
    """
    try:
        joint_query(rendered, columns)
    except NotJoint as error:
        if not error.quoted or not (translated or len(error.quoted) > _LONG):
            return str(error)
        lines = rendered.sql[: error.at].split("\n")
        place = rendered.locate(len(lines), len(lines[-1]))
        return str(error).replace(f", {error.quoted},", f" in line {place.line}")
    return None


def _require(model: Model) -> None:
    """Raise NotJoint for what is not in the query itself."""
    if model.python is not None:
        raise NotJoint("Python makes its rows, for one slice at a time")
    spec = model.partition
    if spec is None or spec.kind not in TIME_KINDS:
        raise NotJoint("it has no partitions by time")
    if not model.strategy.joint:
        raise NotJoint(f"its strategy is {model.strategy}")
    if model.columns:
        raise NotJoint("its columns are declared")
    if model.query.after:
        raise NotJoint("statements follow its query")
    if model.query.uses_interval:
        raise NotJoint("it reads by @start_... and @end_..., which each slice has of its own")
    _require_no_asof(model)
    _require_other_tables(model)
    for source in model.query.files:
        if any(depends_on_slice(value) for _, value in source.options):
            raise NotJoint(f"an option of {source.function} depends on the partition")
    used = [
        token
        for part in model.query.parts
        for token in part.statement.tokens
        if (
            (token.kind, token.value) == (STRING, TOKEN)
            or (token.kind == ARGUMENT and token.value in _OF_SLICE)
        )
        and not _is_of_file(part, token)
    ]
    rendered = model.query.render(trial_names(model.query.sources))
    if len(used) != len(_markers(rendered)):
        raise NotJoint("what it reads depends on the partition")


def _require_no_asof(model: Model) -> None:
    tokens = (token for part in model.query.parts for token in part.statement.tokens)
    if any(token.kind == WORD and token.upper == "ASOF" for token in tokens):
        raise NotJoint("it has an ASOF JOIN, which is evaluated for one slice at a time")


def _is_of_file(part: Part, token: Token) -> bool:
    """Return whether a word is of a call that reads files."""
    return any(
        each.start <= token.start < each.end and isinstance(each.source, FileSource)
        for each in part.sources
    )


def _require_other_tables(model: Model) -> None:
    """Raise NotJoint where it looks at its own table, which has other slices meanwhile."""
    own = fold(str(model.target))
    if own in {fold(str(table)) for table in model.inputs}:
        raise NotJoint("it reads its own table")
    for test in model.data_tests:
        if isinstance(test, data_test.RelationshipsTest):
            to = table_of(test.to)
            if to is None or fold(str(to)) == own:
                raise NotJoint(f"its test {test.name} reads its own table")
    for script in model.test_scripts:
        if own in {fold(str(table)) for table in script.query.reads}:
            raise NotJoint(f"its test {script.test.name} reads its own table")


_OF_SLICE = (PARTITION, PARTITION_START, PARTITION_END)


def sliced_files(query: Query) -> dict[FileSource, str]:
    """Return the files that a query reads whose paths the slice is part of, each with the name of
    its column that is to say the slice.
    """
    files = [source for source in query.files if depends_on_slice(source.path)]
    return {source: f"{_OF_FILES}{number}" for number, source in enumerate(files)}


def slice_columns(query: Query, names: Mapping[QuerySource, str]) -> dict[str, str]:
    """Return the columns of `sliced_files` by the names that these have in the text."""
    return {fold(names[of].strip("`")): column for of, column in sliced_files(query).items()}


def joint_query(rendered: RenderedQuery, columns: Mapping[str, str] = _NO_COLUMNS) -> Joint:
    """``columns`` are those of `slice_columns`. Raises NotJoint, and Unreadable for what cannot be
    parsed.
    """
    sql = rendered.sql
    if rendered.calls_macros:
        raise NotJoint("it calls macros")
    parse_query(sql)
    tokens = tokenize(sql)
    markers = _markers(rendered)
    if not markers and not columns:
        raise NotJoint("it has no condition on the partition")
    _refuse(tokens)
    reading = Reading(sql, tokens, markers)
    try:
        carried = reading.query(read_query(tokens), Scope(columns=columns), None)
    except Unclear as error:
        raise NotJoint(str(error)) from error
    if reading.seen != set(markers):
        raise NotJoint("the partition stands outside of a WHERE, or in a query in an expression")
    if not carried:
        raise NotJoint("its outermost SELECT reads nothing with a condition on the partition")
    selects = tuple(reading.selects)
    conditions = tuple(each.condition for each in selects if each.condition is not None)
    trials = tuple(each.trial for each in selects if each.condition is not None)
    return Joint(sql, conditions, trials, selects, tuple(reading.fixed))


def _refuse(tokens: Sequence[Token]) -> None:
    for token in volatile_calls(tokens):
        raise NotJoint(f"{token.text} is not the same from run to run")
    for token in tokens:
        if token.text == "|>" or (token.kind == WORD and token.upper in {"TABLE", "TABLESAMPLE"}):
            raise NotJoint(f"it has {token.text}")


def _markers(rendered: RenderedQuery) -> dict[int, str]:
    """Return what each marker of the slice stands for, by the number of its word."""
    names = {f":{name}": _meaning(value) for name, value in rendered.placeholders.items()}
    return {
        at: meaning
        for at, token in enumerate(tokenize(rendered.sql))
        if token.kind == MARKER and (meaning := names.get(token.text)) is not None
    }


def _meaning(value: Constant) -> str | None:
    """Return what of the slice a placeholder is made of; ``other`` where that is more than one
    value.
    """
    if isinstance(value, PartitionValue):
        return PARTITION
    if isinstance(value, ArgumentValue):
        return value.name if value.name in _OF_SLICE else None
    return None
