"""Expand ``@`` macros at a place of a script.

``@name`` and ``@{name}`` stand for a variable, ``@name(...)`` for what a function makes of its
arguments as they are written. A text that becomes a part of a name loses its quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from penstock.model.script.at_text import (
    Lambda,
    MacroError,
    apart,
    arguments,
    as_name,
    bare,
    braced,
    names_something,
    part_of_name,
    quoted_name,
    substituted,
    tokens_of,
)
from penstock.model.time.time_macros import TIMES, argument_of
from penstock.settings.project_settings import Value as VariableValue
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.literals import plain_text_literal, text_literal
from penstock.sql.query.edits import Edit, edited
from penstock.sql.tokens import NAME, NUMBER, STRING, WORD, Token, closing

Made = str | list[str]  # SQL, or the items of a list of it
Builtin = Callable[[Sequence[str], "Scope"], Made]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a project's macro: the texts of its arguments, and where it is called."""

    plain: Sequence[str]
    named: Mapping[str, str]
    scope: Scope


Function = Callable[[Call], Made]


@dataclass(frozen=True, slots=True)
class AtMacros:
    """``variables`` are texts by name, of a model; ``functions`` those of the project, and
    ``settings`` the values of its ``[project.variables]``.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    settings: Mapping[str, VariableValue] = field(default_factory=dict)

    def saying(self, **variables: str) -> AtMacros:
        return replace(self, variables={**self.variables, **variables})


def sql_of(value: VariableValue, dialect: str) -> str:
    """Return a variable of the project as SQL: a literal, or ``[a, b]`` of a list."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, tuple):
        return f"[{', '.join(sql_of(item, dialect) for item in value)}]"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return text_literal(value) if dialect == SPARK else plain_text_literal(value)
    return repr(value)


@dataclass(slots=True)
class Scope:
    """``defined`` is filled by ``@DEF``; ``given`` are the parameters of functions, folded."""

    macros: AtMacros
    dialect: str
    builtins: Mapping[str, Builtin]
    unknown: Callable[[str, Scope, bool], MacroError]
    defined: dict[str, str | Lambda] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    def saying(self, given: Mapping[str, str]) -> Scope:
        return replace(self, given={**self.given, **given})

    def known(self, name: str) -> str | None:
        """Return what a variable stands for; None for one that nothing has, or that a run gives."""
        value = self.given.get(fold(name))
        if value is None:
            value = self.macros.variables.get(name.lower())
        if value is not None:
            return value
        defined = self.defined.get(name.lower())
        if isinstance(defined, str):
            return self.expanded(defined)
        setting = None if name.lower() in TIMES else self.macros.settings.get(name.lower())
        return None if setting is None else sql_of(setting, self.dialect)

    def variable(self, name: str) -> str:
        value = self.known(name)
        if value is not None:
            return value
        if name.lower() in TIMES:
            return f"${argument_of(name.lower())}"
        raise self.unknown(name, self, False)

    def call(self, name: str, written: Sequence[str]) -> Made:
        own = self.defined.get(name.lower())
        if isinstance(own, Lambda):
            return self.applied(own, self.spliced(written))
        function = self.macros.functions.get(name.lower())
        builtin = self.builtins.get(name.lower())
        if builtin is not None:
            return builtin(written, self)
        if function is None:
            raise self.unknown(name, self, True)
        plain: list[str] = []
        named: dict[str, str] = {}
        for text in written:
            key, sign, value = text.partition(":=")
            if sign and key.strip().isidentifier():
                named[key.strip()] = self.expanded(value.strip())
            else:
                plain += self.spliced([text])
        made = function(Call(plain, named, self))
        return self.expanded(made) if isinstance(made, str) else [*map(self.expanded, made)]

    def applied(self, function: Lambda, values: Sequence[str]) -> str:
        given = function.given(values)
        return self.saying(given).expanded(function.filled(given, self.dialect))

    def expanded(self, text: str) -> str:
        """A part of a script, or what a macro made."""
        if "@" not in text:
            return text
        return edited(text, self.edits(text, tokens_of(text, self.dialect))).text

    def spliced(self, written: Sequence[str]) -> list[str]:
        """Arguments, expanded: those of a list that a macro makes are arguments of their own."""
        found: list[str] = []
        for text in written:
            made = self.list_of(text)
            found += (
                [each for each in made if each.strip()]
                if made is not None
                else [self.expanded(text)]
            )
        return found

    def list_of(self, text: str) -> list[str] | None:
        """The items where a text is one call of a macro, and nothing else."""
        tokens = tokens_of(text, self.dialect) if text.lstrip().startswith("@") else []
        if len(tokens) < 4 or tokens[2].text != "(" or closing(tokens, 2) != len(tokens) - 1:
            return None
        _, made = self._one(text, tokens, 0)
        return [made] if isinstance(made, str) else made

    def edits(self, text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
        at, done = 0, 0
        while at < len(tokens):
            token = tokens[at]
            if token.kind == NAME and "@" in token.text:
                yield from self._in_quotes(token)
            if not _begins(tokens, at):
                at += 1
                continue
            try:
                edit, last = self._edit(text, tokens, at, done)
            except MacroError as error:
                error.at = token.start
                raise
            if edit is not None:
                yield edit
                done = edit.end
            at = last + 1

    def _edit(
        self, text: str, tokens: Sequence[Token], at: int, done: int
    ) -> tuple[Edit | None, int]:
        """Return what the ``@`` at ``at`` becomes, and the last token of that."""
        if _is_variable(tokens, at):
            return self._of_variable(text, tokens, at, done)
        last, made = self._one(text, tokens, at)
        if last is None:
            return None, at
        shown = made if isinstance(made, str) else ", ".join(each for each in made if each.strip())
        begin, end = tokens[at].start, tokens[last].end
        if not shown.strip():
            begin, end, last = _without_comma(tokens, at, last, done)
        return Edit(begin, end, apart(text, begin, shown)), last

    def _of_variable(
        self, text: str, tokens: Sequence[Token], at: int, done: int
    ) -> tuple[Edit, int]:
        first = at
        if at and _adjoins(tokens, at - 1) and tokens[at - 1].start >= done:
            first = at - 1 if tokens[at - 1].kind == WORD else at
        parts: list[str] = [] if first == at else [tokens[first].text]
        last = at - 1
        while last + 1 < len(tokens) and (last < at or _adjoins(tokens, last)):
            if _begins(tokens, last + 1) and _is_variable(tokens, last + 1):
                name, last = _variable_at(tokens, last + 1)
                parts.append(self.variable(name))
            elif last >= at and tokens[last + 1].kind in {WORD, NUMBER}:
                last += 1
                parts.append(tokens[last].text)
            else:
                break
        begin, end = tokens[first].start, tokens[last].end
        if len(parts) > 1:
            joined = "".join(part_of_name(part, self.dialect) for part in parts)
            return Edit(begin, end, quoted_name(joined, self.dialect)), last
        made = self._placed(parts[0], tokens, at, last)
        if not made.strip():
            begin, end, last = _without_comma(tokens, at, last, done)
        return Edit(begin, end, apart(text, begin, made)), last

    def _placed(self, value: str, tokens: Sequence[Token], at: int, last: int) -> str:
        """The value of a variable as it is where that stands on its own."""
        before = tokens[at - 1] if at else None
        after = tokens[last + 1] if last + 1 < len(tokens) else None
        if names_something(before, after):
            return as_name(value, self.dialect)
        in_braces = tokens[at + 1].text == "{"
        is_text = value[:1] == "'" and bare(value, self.dialect) != value
        return as_name(value, self.dialect) if in_braces and is_text else value

    def _one(self, text: str, tokens: Sequence[Token], at: int) -> tuple[int | None, Made]:
        """The last token of the text or call after the ``@`` at ``at``, and what it stands for."""
        after = tokens[at + 1]
        if after.kind == STRING:
            return at + 1, self.interpolated(after.text)
        if after.kind not in {WORD, NAME}:
            return None, ""
        close = closing(tokens, at + 2)
        if close is None:
            raise MacroError(f"the bracket of @{after.value}( is never closed", "close it")
        return close, self.call(after.value, arguments(text, tokens[at + 3 : close]))

    def _in_quotes(self, token: Token) -> Iterator[Edit]:
        """A name in quotes with the values of variables in it."""
        name = token.value

        def value_of(name: str) -> str | None:
            value = self.known(name)
            return None if value is None else part_of_name(value, self.dialect)

        made = substituted(name, value_of)
        if made != name:
            yield Edit(token.start, token.end, quote_identifier(made, mark=token.text[0]))

    def interpolated(self, written: str) -> str:
        """``'a@{x}'`` with the values of its variables."""

        def value_of(name: str) -> str | None:
            value = self.known(name)
            if value is None and name.lower() in TIMES:
                message = f"@{{{name}}} is a value of the run, which never becomes a part of a text"
                raise MacroError(message, f"concatenate: 'text' || @{name}")
            return None if value is None else bare(value, self.dialect).replace("'", "''")

        made = substituted(written, value_of)
        for name in braced(written):
            if self.known(name) is None:
                raise self.unknown(name, self, False)
        return made


def _begins(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a macro begins there: ``@`` with something right behind it."""
    following = at + 1 < len(tokens) and tokens[at + 1].start == tokens[at].end
    return tokens[at].text == "@" and following


def _is_variable(tokens: Sequence[Token], at: int) -> bool:
    after = tokens[at + 1]
    if after.text == "{":
        return True
    opening = tokens[at + 2] if at + 2 < len(tokens) else None
    called = opening is not None and opening.text == "(" and opening.start == after.end
    return after.kind in {WORD, NAME} and not called


def _variable_at(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """The name of the variable that begins at ``at``, and its last token."""
    if tokens[at + 1].text != "{":
        return tokens[at + 1].value, at + 1
    close = closing(tokens, at + 1)
    if close != at + 3:
        raise MacroError("@{...} holds a name", "write @{name}")
    return tokens[at + 2].value, close


def _adjoins(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the next token follows without a space."""
    return at + 1 < len(tokens) and tokens[at + 1].start == tokens[at].end


def _without_comma(
    tokens: Sequence[Token], first: int, last: int, done: int
) -> tuple[int, int, int]:
    """The span of what became nothing, with a comma of the list that it stands in."""
    if last + 1 < len(tokens) and tokens[last + 1].text == ",":
        return tokens[first].start, tokens[last + 1].end, last + 1
    if first and tokens[first - 1].text == "," and tokens[first - 1].start >= done:
        return tokens[first - 1].start, tokens[last].end, last
    return tokens[first].start, tokens[last].end, last
