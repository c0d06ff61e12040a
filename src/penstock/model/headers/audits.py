"""``audits (name, name(option := value), ...)``: the data tests that they are, read and written.

The names and options are SQLMesh's; ``blocking := false`` and the suffix ``_non_blocking`` make a
failure a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.model.headers import values
from penstock.model.headers.audit_blocks import AuditBlock
from penstock.model.headers.audit_tests import AUDITS, Audit
from penstock.model.headers.draft import BlockDraft
from penstock.model.headers.syntax import NamedValue, Value, Wrong, groups, suggestion
from penstock.model.time.time_macros import TIMES
from penstock.model.values.data_test import (
    ERROR,
    SEVERITIES,
    WARN,
    AcceptedValuesTest,
    CustomTest,
    DataTest,
    ExpressionTest,
    NotNullTest,
    UniqueTest,
)
from penstock.sql.dialect import normalized, to_spark
from penstock.sql.identifiers import nearest
from penstock.sql.literals import plain_text_literal
from penstock.sql.text import Unreadable, parse_expression
from penstock.sql.tokens import NAME, STRING, WORD, closing

_NON_BLOCKING = "_non_blocking"


def read_audits(prop: NamedValue, draft: BlockDraft) -> tuple[DataTest, ...]:
    """The data tests that the audits stand for. Raises Wrong."""
    tests: list[DataTest] = []
    for item in prop.value.items():
        for test in _tests_of(item, draft):
            draft.places[f"data_test:{len(tests)}"] = draft.place(item)
            tests.append(test)
    return tuple(tests)


def write_audit(test: DataTest) -> str | None:
    """Write a data test as an audit.

    Args:
        test: A test of either form.

    Returns:
        The audit; None where there is none.
    """
    if test.severity != ERROR:
        return None
    match test:
        case NotNullTest(columns=columns):
            return f"not_null(columns := ({', '.join(map(values.write_name, columns))}))"
        case UniqueTest(columns=(column,), nulls_equal=True, whole_table=False):
            return f"unique_values(columns := {values.write_name(column)})"
        case AcceptedValuesTest(column=column, values=accepted):
            listed = ", ".join(map(plain_text_literal, accepted))
            name = values.write_name(column)
            return f"accepted_values(column := {name}, is_in := ({listed}))"
    return None


def _tests_of(value: Value, draft: BlockDraft) -> tuple[DataTest, ...]:
    """The data tests that one audit stands for. Raises Wrong."""
    first = value.tokens[0]
    said = first.value.lower()
    name = said.removesuffix(_NON_BLOCKING)
    own = draft.audits.get(said) or draft.audits.get(name)
    if own is not None:
        return tuple(_of_block(value, own, draft, warns=own.name != said))
    if first.kind not in {WORD, NAME, STRING} or name not in AUDITS:
        known = (*draft.audits, *AUDITS)
        hint = suggestion(name, known, f"the audits are {', '.join(known)}")
        raise value.wrong(f"audit {first.value} does not exist", hint)
    build, required, optional = AUDITS[name]
    spelled = _options(value)
    options = _in_our_words(value, name, spelled)
    blocking, condition = options.pop("blocking", None), options.pop("condition", None)
    severity = options.pop("severity", None)
    warns = said != name or (blocking is not None and not values.boolean(blocking))
    _check(value, name, options, required, optional)
    audit = Audit(value, name, options, spelled=frozenset(spelled))
    if condition is not None and condition.text.upper() != "TRUE":
        where = _in_spark(condition, draft.dialect)
        audit = replace(audit, where=where, written=condition.text)
    built = build(audit)
    tests = [
        replace(test, location=draft.place(value))
        if isinstance(test, ExpressionTest) and test.location is None
        else test
        for test in built
    ]
    level = _severity(severity) if severity is not None else WARN if warns else None
    return tuple(tests if level is None else (replace(test, severity=level) for test in tests))


def _severity(value: Value) -> str:
    """Return ``severity := quarantine``. Raises Wrong."""
    text = value.text.strip("'\"").lower()
    if text not in SEVERITIES:
        guess = nearest(text, SEVERITIES) or " or ".join(SEVERITIES)
        raise value.wrong(f"severity has no value {text}", f"write severity := {guess}")
    return text


def _in_our_words(value: Value, name: str, options: Mapping[str, Value]) -> dict[str, Value]:
    """The options by our names of them, where SQLMesh's code has others. Raises Wrong."""
    theirs = _THEIR_WORDS.get(name, {})
    found: dict[str, Value] = {}
    for each, given in options.items():
        own = theirs.get(each, each)
        if own in found:
            raise value.wrong(f"`{own}` is given twice, once as `{each}`", "keep one")
        found[own] = given
    return found


_THEIR_WORDS: Mapping[str, Mapping[str, str]] = {
    "kl_divergence": {"source_column": "column"},
    "chi_square": {"column_a": "column", "column_b": "target_column"},
}


def _in_spark(condition: Value, dialect: str) -> str:
    """A condition in Spark's SQL. Raises Wrong."""
    hint = "write a condition of a row's columns, as status = 'paid'"
    try:
        parse_expression(condition.text, dialect)
        return to_spark(normalized(condition.text, dialect), dialect, expression=True)
    except (UnsupportedFeature, QueryFailed) as error:
        raise condition.wrong(error.message, error.hint or hint) from None
    except Unreadable as error:
        raise condition.wrong(f"`{condition.text}` cannot be read{error}", hint) from None


def _of_block(
    value: Value, block: AuditBlock, draft: BlockDraft, *, warns: bool
) -> Iterator[DataTest]:
    """The test that an audit of the project is. Raises Wrong."""
    options = _options(value)
    blocking = options.pop("blocking", None)
    unknown = next((given for given in options if given not in block.options), None)
    if unknown is not None:
        known = ", ".join(name for name in block.options if name not in {"this_model", *TIMES})
        message = f"`{unknown}` is not an option of the audit {block.name}"
        hint = f"its options are {known}" if known else "it has none"
        raise options[unknown].wrong(message, hint)
    given = {name: said.text for name, said in options.items()}
    if block.skip:
        message = f"the audit {block.name} is not run: it says skip true"
        draft.warn(value.start, message, "write skip false", "model-idle")
        return
    blocks = block.blocking if blocking is None else values.boolean(blocking)
    test = CustomTest(block.name, tuple(given.items()))
    yield replace(test, severity=WARN) if warns or not blocks else test


def _options(audit: Value) -> dict[str, Value]:
    """``(option := value, ...)``."""
    rest = audit.tokens[1:]
    if not rest:
        return {}
    if rest[0].text != "(" or closing(rest, 0) != len(rest) - 1:
        raise Wrong(
            rest[0].start,
            f"`{rest[0].text}` follows the audit",
            "write a comma before it; several audits stand in brackets",
        )
    found: dict[str, Value] = {}
    for group in groups(rest[1:-1], rest[-1].start):
        if len(group) < 3 or group[1].text not in {":=", "=>", "="}:
            hint = "write option := value"
            raise Wrong(group[0].start, f"`{group[0].text}` is not an option with its value", hint)
        name = group[0].value.lower()
        if name in found:
            raise Wrong(group[0].start, f"`{name}` is given twice", "keep one")
        found[name] = Value(audit.source, group[2:])
    return found


def _check(
    audit: Value,
    name: str,
    options: Mapping[str, Value],
    required: tuple[str, ...],
    optional: tuple[str, ...],
) -> None:
    known = (*required, *optional)
    unknown = next((given for given in options if given not in known), None)
    if unknown is not None:
        message = f"`{unknown}` is not an option of the audit"
        raise options[unknown].wrong(
            message, f"its options are {', '.join((*known, 'condition', 'blocking'))}"
        )
    missing = next((option for option in required if option not in options), None)
    if missing is not None:
        raise audit.wrong(f"the audit needs `{missing}`", f"write {name}({missing} := ...)")
