"""Tell which columns of a table say of a row in which slices it can be.

A condition of a reader bounds the slices that it reads only by such a column: the one that holds
the value of the slice, the time column, and those whose values the model's query bounds by its own
slice. Any other column may have any value in any slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from penstock.model.definition.graph import table_key
from penstock.model.definition.model import Model
from penstock.model.script.sources import QuerySource, is_earlier, table_read
from penstock.model.slicing.comparisons import ColumnWindows
from penstock.model.slicing.moments import CIVIL, Grain
from penstock.model.slicing.slices_read import SliceColumn
from penstock.model.slicing.windows import Columns, columns_of_slice
from penstock.model.time.moments import DEFAULT
from penstock.model.time.needs import COMMON, Bound, Window
from penstock.model.time.partition import TIME_KINDS
from penstock.sql.identifiers import fold

_SHORTER_THAN_DAYS = frozenset({"hour", "half_hour", "quarter_hour", "five_minute"})
#: days by which the same date differs between two zones, or a moment and its date
_MARGIN = 2


@dataclass(frozen=True, slots=True)
class Slices:
    """Describe the slices of a model: equal texts mean equal slices.

    ``in_days``: none is shorter than a day. ``in_order``: the texts of their values are in the
    order of time. ``by_time``: they have places in time.
    """

    text: str
    zone: str
    in_days: bool
    in_order: bool
    by_time: bool = True

    @classmethod
    def of(cls, model: Model) -> Slices:
        spec = model.partition
        if spec is None:
            unit = "" if model.by_time is None else model.by_time.unit.name
            in_days = unit not in _SHORTER_THAN_DAYS
            return cls(f"{model.slicing} {unit}", "UTC", in_days, in_order=True)
        by_time, in_days = spec.kind in TIME_KINDS, spec.kind != "hourly"
        in_order = by_time and spec.kind != "weekly" and spec.format is None
        return cls(spec.slicing, spec.tz or "UTC", in_days, in_order, by_time)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compare a column of an input, which lies within its slices, with the slice of a reader.

    ``zone`` is the time zone of the session.
    """

    reader: Slices
    upstream: Slices
    zone: str = "UTC"

    def windows(self, condition: ColumnWindows, column: ColumnWindows) -> tuple[Window, ...] | None:
        """Return the windows of slices that hold all rows within a condition; None where that is
        not certain.
        """
        is_value, is_text = condition.grain is Grain.VALUE, column.grain is Grain.TEXT
        if not (self.reader.by_time and self.upstream.by_time):
            same = is_value and (is_text or column.grain is Grain.VALUE)
            return condition.windows if same and condition.windows == (COMMON,) else None
        if is_value and not self._is_ordered(condition):
            return None
        if is_value and is_text and self.reader.text == self.upstream.text:
            return condition.windows
        if self._is_exact(condition, column.grain):
            return condition.windows
        return tuple(map(_widened, condition.windows))

    def _is_ordered(self, condition: ColumnWindows) -> bool:
        """Return whether the order of texts is that of time, or does not matter."""
        in_order = self.reader.in_order and self.upstream.in_order
        same = self.reader.text == self.upstream.text
        return in_order or (same and condition.windows == (COMMON,))

    def _is_exact(self, condition: ColumnWindows, column: Grain) -> bool:
        grains = {condition.grain, column}
        if grains == {Grain.INSTANT}:
            return True
        zones = {self.reader.zone, self.upstream.zone}
        if not grains <= CIVIL:
            zones.add(self.zone)
        if len(zones) > 1:
            return False
        bounds = (end for window in condition.windows for end in (window.first, window.last) if end)
        in_days = self.reader.in_days and not any(bound.shift.rest for bound in bounds)
        at_moments = condition.grain is Grain.INSTANT and self.upstream.in_days
        return in_days or at_moments


def _widened(window: Window) -> Window:
    first, last = window.first, window.last
    return Window(first and _moved(first, -_MARGIN), last and _moved(last, _MARGIN))


def _moved(bound: Bound, days: int) -> Bound:
    return replace(bound, shift=replace(bound.shift, days=bound.shift.days + days))


@dataclass(slots=True)
class SliceColumns:
    """The columns of models that lie within their slices. ``made`` are the models by their tables,
    ``partition_column`` names by lake the column with the value of each row's slice.
    """

    made: Mapping[str, Model]
    partition_column: Callable[[str], str]
    zone: str = "UTC"
    _known: dict[str, Columns] = field(default_factory=dict)

    def of(self, model: Model) -> Columns:
        known = self._known.get(model.name)
        if known is None:
            self._known[model.name] = {}  # of a model that reads itself nothing is inherited
            known = self._known[model.name] = self._found(model)
        return known

    def column(self, model: Model, name: str, columns: Columns) -> SliceColumn | None:
        """Return what conditions on a column of a model are evaluated over.

        Args:
            model: The model that makes the column.
            name: The column, folded.
            columns: The columns that tell the slice of a row.

        Returns:
            The column; None where it does not tell the slice, or times have a format of the model.
        """
        bounds = columns.get(name)
        if bounds is None:
            return None
        time_column = None if model.ranges is None else model.ranges.column
        if time_column is not None:
            has_format = time_column.format not in (None, DEFAULT)
            is_time = name == fold(time_column.name)
            unknown = has_format or time_column.by_expression
            return None if unknown else SliceColumn(bounds.grain, bounds.is_day, is_time=is_time)
        is_managed = name == fold(self.partition_column(model.target.lake))
        return SliceColumn(bounds.grain, bounds.is_day, is_managed)

    def _found(self, model: Model) -> Columns:
        column = None if model.ranges is None else model.ranges.column
        if column is not None:
            name = fold(column.name)
            managed = {name: ColumnWindows(name, (COMMON,), Grain.INSTANT)}
            return {**self._of_query(model, name), **managed}
        if model.partition is None:
            return {}
        name = fold(self.partition_column(model.target.lake))
        managed = {name: ColumnWindows(name, (COMMON,), Grain.TEXT)}
        return {**self._of_query(model, None), **managed}

    def _of_query(self, model: Model, time_column: str | None) -> Columns:
        strategy = model.strategy
        by_query = strategy.replaces or strategy.only_adds or strategy.merges
        if model.python is not None or model.upsert:
            return {}
        if time_column is not None:
            return columns_of_slice(model.query, time_column)
        if not by_query:
            return {}

        def inherited(source: QuerySource, known: Columns) -> Columns:
            return self._inherited(model, source, known)

        return columns_of_slice(model.query, None, inherited)

    def _inherited(self, model: Model, source: QuerySource, conditions: Columns) -> Columns:
        """Return the columns of an input that lie within the slice of its reader, where the bounds
        of one show that a row is of the same slice.
        """
        table = table_read(source)
        upstream = None if table is None or is_earlier(source) else self.made.get(table_key(table))
        if upstream is None or upstream is model or upstream.partition is None:
            return {}
        slices, upstream_slices = Slices.of(model), Slices.of(upstream)
        if slices.text != upstream_slices.text:
            return {}
        columns, comparison = self.of(upstream), Comparison(slices, upstream_slices, self.zone)
        for name, condition in conditions.items():
            column = columns.get(name)
            if column is not None and comparison.windows(condition, column) == (COMMON,):
                return columns
        return {}
