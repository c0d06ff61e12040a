"""Rendering: edits made, other dialects turned into Spark's, places kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher

from penstock.errors import Location, QueryFailed, UnsupportedFeature
from penstock.model.asof.asof import ASOF_SETTING, asof_joins
from penstock.model.files.source_map import Source
from penstock.model.query.analysis import Part
from penstock.model.script.constants import Bindings, Constant
from penstock.model.script.script import Setting
from penstock.model.script.sources import QuerySource
from penstock.sql.dialect import SPARK, to_spark
from penstock.sql.macros import Book
from penstock.sql.query.edits import Anchor, Edit, Mapped, Piece, assemble, edited, pieces
from penstock.sql.text import Unreadable
from penstock.sql.tokens import Token, has_word, tokenize

_STAND_IN = "penstock_source_{}_"


class UnsupportedSql(Exception):
    """The other dialect has something with no known equivalent in Spark's SQL.

    ``offset`` is its place in the file; ``function`` the name of one that is not known.
    """

    def __init__(self, message: str, offset: int, function: str = "") -> None:
        self.offset = offset
        self.function = function
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of macros in DuckDB's dialect: ``find`` gives those that a text calls, and is asked
    ``always``, or only where a function is not known.
    """

    find: Callable[[str], Book]
    always: bool = False


@dataclass(frozen=True, slots=True)
class RenderedQuery:
    """``sql`` goes to Spark with :meth:`args`; ``settings`` must be in force when it does.

    ``calls_macros``: their bodies are in ``sql``, with names of the lake's tables.
    """

    sql: str
    placeholders: Mapping[str, Constant]
    settings: Mapping[str, str]
    source: Source = field(repr=False)
    steps: tuple[Mapped, ...] = field(repr=False)
    calls_macros: bool = False

    def args(self, bindings: Bindings) -> dict[str, object]:
        """Values for the ``:name`` markers. Times go as text, which the query casts."""
        values = {name: value.evaluate(bindings) for name, value in self.placeholders.items()}
        return {
            name: value.isoformat(sep=" ") if isinstance(value, datetime) else value
            for name, value in values.items()
        }

    def locate(self, line: int, position: int) -> Location:
        """The place in the user's file of Spark's ``line`` (from 1) and ``pos`` (from 0)."""
        lines = self.sql.split("\n")
        offset = sum(len(before) + 1 for before in lines[: line - 1]) + position
        for step in reversed(self.steps):
            offset = step.back(min(offset, len(step.text)))
        return self.source.location(offset)


def render_parts(
    source: Source,
    dialect: str,
    parts: Sequence[Part],
    names: Mapping[QuerySource, str],
    settings: Iterable[Setting] = (),
    *,
    calls: Calls | None = None,
) -> RenderedQuery:
    """Temporary tables become a WITH around the query, which is the last of ``parts``.

    ``calls`` are of macros in another dialect than Spark's. Raises UnsupportedSql.
    """
    foreign = dialect != SPARK
    stand_ins = trial_names(names) if foreign else names
    steps = [whole_text(source, parts, stand_ins)]
    finder = calls or Calls(lambda _: Book(()))
    translation = _foreign(steps[-1], dialect, finder) if foreign else []
    steps += translation
    tokens = tokenize(steps[-1].text)
    if has_word(tokens, "ASOF"):
        joins = asof_joins(steps[-1].text, tokens)
        steps += [edited(steps[-1].text, joins)] if joins else []
    if foreign:
        text, by_stand_in = steps[-1].text, {stand_ins[key]: names[key] for key in names}
        words = [token for token in tokenize(text) if token.value in by_stand_in]
        edits = [Edit(word.start, word.end, by_stand_in[word.value]) for word in words]
        steps.append(edited(text, edits))
    wanted = {setting.name: setting.value for setting in settings}
    asof = any(has_word(part.statement.tokens, "ASOF") for part in parts)
    return RenderedQuery(
        steps[-1].text,
        {name: value for part in parts for name, value in part.placeholders.items()},
        wanted | ({ASOF_SETTING: "true"} if asof else {}),
        source,
        tuple(steps),
        calls_macros=len(translation) > 1,
    )


def whole_text(source: Source, parts: Sequence[Part], names: Mapping[QuerySource, str]) -> Mapped:
    """The parts as one query in the script's own dialect; what it reads is called by ``names``."""
    return assemble(_pieces(source.text, parts, names))


def render_statement(
    source: Source,
    part: Part,
    names: Mapping[QuerySource, str],
    settings: Iterable[Setting] = (),
) -> RenderedQuery:
    """A statement for the lake, which reads the script's dialect itself."""
    step = assemble(_part(source.text, part, names))
    wanted = {setting.name: setting.value for setting in settings}
    return RenderedQuery(step.text, part.placeholders, wanted, source, (step,))


def trial_names(sources: Iterable[QuerySource]) -> dict[QuerySource, str]:
    """Names that every dialect takes, for queries that are turned into Spark's."""
    return {source: _STAND_IN.format(number) for number, source in enumerate(sources)}


def _pieces(text: str, parts: Sequence[Part], names: Mapping[QuerySource, str]) -> Iterable[Piece]:
    *temporaries, body = parts
    opening = "WITH "
    for part in temporaries:
        at = part.statement.start
        yield Piece(f"{opening}{part.name} AS (\n", at, exact=False)
        yield from _part(text, part, names)
        yield Piece("\n)", part.statement.end, exact=False)
        opening = ", "
    if temporaries:
        yield Piece("\n(", body.statement.start, exact=False)
    yield from _part(text, body, names)
    if temporaries:
        yield Piece("\n)", body.statement.end, exact=False)


def _part(text: str, part: Part, names: Mapping[QuerySource, str]) -> list[Piece]:
    named = [Edit(edit.start, edit.end, names[edit.source]) for edit in part.sources]
    return pieces(text, [*named, *part.edits], part.statement.start, part.statement.end)


def _foreign(step: Mapped, dialect: str, calls: Calls) -> list[Mapped]:
    """Another dialect's text without macros, where it calls some, and then in Spark's SQL."""
    unknown: UnsupportedSql | None = None
    if not calls.always:
        try:
            return [_translated(step, dialect)]
        except UnsupportedSql as error:
            if not error.function:
                raise
            unknown = error
    book = calls.find(step.text)
    if not book.macros:
        if unknown is not None:
            raise unknown
        return [_translated(step, dialect)]
    expanded = _expanded(step, dialect, book, 0 if unknown is None else unknown.offset)
    try:
        return [expanded, _translated(expanded, dialect, book.names())]
    except UnsupportedSql as error:
        raise UnsupportedSql(str(error), step.back(error.offset)) from None


def _expanded(step: Mapped, dialect: str, book: Book, offset: int) -> Mapped:
    """``offset`` is the place of a call in the file, for errors that have none."""
    from penstock.sql.macro_calls import expansions

    try:
        text = expansions(step.text, book)[-1].text
    except Unreadable as error:
        raise UnsupportedSql(f"the query cannot be read{error}", step.back(error.at)) from None
    except (QueryFailed, UnsupportedFeature) as error:
        hint = f" ({error.hint})" if error.hint else ""
        raise UnsupportedSql(f"{error.message}{hint}", offset or step.back(0)) from None
    return Mapped(text, _align(tokenize(step.text, dialect), tokenize(text, dialect)))


def _translated(step: Mapped, dialect: str, own: Collection[str] = ()) -> Mapped:
    """Another dialect's text in Spark's SQL, with a place for every token that both texts have.

    ``own`` are macros, whose schema stays.
    """
    try:
        result = to_spark(step.text, dialect, own, asof=True)
    except UnsupportedFeature as error:
        function = str(error.data.get("function") or "")
        offset = step.back(int(error.data["start"]))
        raise UnsupportedSql(error.message, offset, function) from None
    except Unreadable as error:
        raise UnsupportedSql(f"the query cannot be read{error}", step.back(error.at)) from None
    return Mapped(result, _align(tokenize(step.text, dialect), tokenize(result)))


def _align(before: Sequence[Token], after: Sequence[Token]) -> tuple[Anchor, ...]:
    matcher = SequenceMatcher(
        None, [_key(token) for token in before], [_key(token) for token in after], autojunk=False
    )
    found: list[Anchor] = []
    for old, new, size in matcher.get_matching_blocks():
        for step in range(size):
            found.append(Anchor(after[new + step].start, before[old + step].start, exact=False))
    first = before[0].start if before else 0
    return (Anchor(0, first, exact=False), *found)


def _key(token: Token) -> str:
    return token.value.upper()
