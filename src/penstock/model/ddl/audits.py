"""``audits (name, name(option := value), ...)``: the data tests that they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from penstock.model.data_test import AcceptedValuesTest, DataTest, NotNullTest, UniqueTest
from penstock.model.ddl import values
from penstock.model.ddl.draft import Draft
from penstock.model.ddl.syntax import Property, Value, Wrong, groups
from penstock.sql.identifiers import nearest
from penstock.sql.tokens import NAME, STRING, WORD, closing

Arguments = Mapping[str, Value]


def read_audits(draft: Draft, prop: Property) -> None:
    for item in prop.value.items():
        where = draft.place(item)
        draft.data_tests += [(test, where) for test in tests_of(item)]


def tests_of(audit: Value) -> tuple[DataTest, ...]:
    """The data tests that one audit stands for. Raises Wrong."""
    name = audit.tokens[0]
    build = AUDITS.get(name.value.lower()) if name.kind in {WORD, NAME, STRING} else None
    if build is None:
        guess = nearest(name.value.lower(), AUDITS)
        hint = f"did you mean {guess}?" if guess else f"the audits are {', '.join(AUDITS)}"
        raise audit.wrong(f"there is no audit {name.value} in this version", hint)
    return tuple(build(audit, _arguments(audit)))


def _arguments(audit: Value) -> Arguments:
    """``(option := value, ...)``."""
    rest = audit.tokens[1:]
    if not rest:
        return {}
    if rest[0].text != "(" or closing(rest, 0) != len(rest) - 1:
        raise Wrong(rest[0].start, f"`{rest[0].text}` follows the audit", "write a comma before it")
    found: dict[str, Value] = {}
    for group in groups(rest[1:-1], rest[-1].start):
        if len(group) < 3 or group[1].text not in {":=", "=>", "="}:
            hint = "write option := value"
            raise Wrong(group[0].start, f"`{group[0].text}` is not an option with its value", hint)
        found[group[0].value.lower()] = Value(audit.source, group[2:])
    return found


def _argument(audit: Value, arguments: Arguments, name: str, *others: str) -> Value:
    """The value of an argument; no others but ``others`` may be given."""
    unknown = next((given for given in arguments if given not in {name, *others}), None)
    if unknown is not None:
        known = ", ".join((name, *others))
        message = f"`{unknown}` is not an option of the audit"
        raise arguments[unknown].wrong(message, f"its options are {known}")
    if name not in arguments:
        shown = f"{audit.tokens[0].value}({name} := ...)"
        raise audit.wrong(f"the audit needs `{name}`", f"write {shown}")
    return arguments[name]


def _not_null(audit: Value, arguments: Arguments) -> Iterator[DataTest]:
    yield NotNullTest(values.names(_argument(audit, arguments, "columns")))


def _unique_values(audit: Value, arguments: Arguments) -> Iterator[DataTest]:
    for column in values.names(_argument(audit, arguments, "columns")):
        yield UniqueTest((column,), nulls_equal=True)


def _accepted_values(audit: Value, arguments: Arguments) -> Iterator[DataTest]:
    column = values.name(_argument(audit, arguments, "column", "is_in"))
    accepted = values.texts(_argument(audit, arguments, "is_in", "column"))
    yield AcceptedValuesTest(column, accepted)


AUDITS: Mapping[str, Callable[[Value, Arguments], Iterable[DataTest]]] = {
    "not_null": _not_null,
    "unique_values": _unique_values,
    "accepted_values": _accepted_values,
}
