"""A managed script: setup statements, then one query (annotations.md, "Validation")."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from penstock.errors import Diagnostic
from penstock.model.files.source_map import Source
from penstock.model.time.time_macros import as_written
from penstock.model.values.asset import DEFAULT_SCHEMA, Names, parse_asset
from penstock.sql.identifiers import nearest
from penstock.sql.tokens import NAME, STRING, WORD, Token, Unclosed, words

QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
WRITE_WORDS = (
    *("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "COPY", "TRUNCATE"),
    *("REPLACE", "EXPORT", "IMPORT", "VACUUM", "CALL"),
)
_WRITES_LATER = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
IGNORED_WORDS = ("INSTALL", "LOAD", "PRAGMA", "DETACH")
MACRO_WORDS = frozenset({"MACRO", "FUNCTION"})
_TEMPORARY = frozenset({"TEMP", "TEMPORARY"})
_MACRO = "write CREATE TEMP MACRO, or a library of macros: -- macros"
_MANAGED = "Penstock writes the table; or use `-- materialize manual ...`"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: its tokens, without the semicolon."""

    tokens: tuple[Token, ...]

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end

    @property
    def word(self) -> str:
        return self.tokens[0].upper


@dataclass(frozen=True, slots=True)
class Setting:
    """``SET name = value``: settings that begin with ``spark.`` are for the query's session."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Temporary:
    """``CREATE TEMP VIEW|TABLE name AS query``."""

    name: str
    query: Statement


@dataclass(frozen=True, slots=True)
class Script:
    """A script taken apart. ``statements`` are its queries, or all that it runs if manual;
    ``after`` are those that follow its query.
    """

    names: Names
    settings: tuple[Setting, ...] = ()
    temporaries: tuple[Temporary, ...] = ()
    statements: tuple[Statement, ...] = ()
    after: tuple[Statement, ...] = ()
    findings: tuple[Diagnostic, ...] = ()


@dataclass(slots=True)
class _Reading:
    source: Source
    names: Names
    manual: bool
    takes_statements: bool = False
    settings: list[Setting] = field(default_factory=list)
    temporaries: list[Temporary] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    after: list[Statement] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)

    def report(self, severity: str, at: int, message: str, hint: str, rule: str) -> None:
        where = self.source.location(at)
        self.findings.append(Diagnostic(severity, message, where, hint, rule))


def read_script(
    source: Source,
    names: Names,
    *,
    start: int = 0,
    dialect: str = "spark",
    manual: bool = False,
    takes_statements: bool = False,
) -> Script:
    """Take the script apart from offset ``start`` on; what breaks a rule is a finding.

    With ``takes_statements`` some that write may follow the query.
    """
    reading = _Reading(source, names, manual, takes_statements)
    try:
        statements = split(words(source.text, dialect, start))
    except Unclosed as error:
        message = f"`{error.opener}` is opened here and never closed"
        reading.report("error", error.offset, message, "close it", "unclosed")
        return Script(names, findings=tuple(reading.findings))
    for statement in _outside_blocks(statements):
        handle = (_MANUAL_SETUP if manual else _SETUP).get(statement.word)
        if handle is None or not handle(statement, reading):
            _body(statement, reading)
    if not manual:
        _check_one_query(reading, empty=not statements, at=start)
    return Script(
        reading.names,
        tuple(reading.settings),
        tuple(reading.temporaries),
        tuple(reading.statements),
        tuple(reading.after),
        tuple(reading.findings),
    )


def split(tokens: Sequence[Token]) -> list[Statement]:
    """Statements between semicolons."""
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == ";":
            found.append([])
        else:
            found[-1].append(token)
    return [Statement(tuple(group)) for group in found if group]


def _outside_blocks(statements: Sequence[Statement]) -> Iterator[Statement]:
    """The statements without what stands in blocks of other tools, which nothing here reads."""
    end = None
    for statement in statements:
        if end is None:
            yield statement
            block = statement.word if statement.word in _BLOCKS else None
            end = block and _END.sub("_END", block)
        elif any(token.upper == end for token in statement.tokens):
            end = None


def is_macro(statement: Statement) -> bool:
    """Return whether it is ``CREATE [OR REPLACE] [TEMP] MACRO`` or ``FUNCTION``."""
    return _macro_word(statement) is not None


def is_temporary(statement: Statement) -> bool:
    """Return whether it is ``CREATE [OR REPLACE] TEMP MACRO``."""
    at = _macro_word(statement)
    return at is not None and statement.tokens[at - 1].upper in _TEMPORARY


def is_variable(statement: Statement) -> bool:
    """Return whether it is ``SET VARIABLE`` or ``RESET VARIABLE``."""
    said = [token.upper for token in statement.tokens[:2]]
    return said in (["SET", "VARIABLE"], ["RESET", "VARIABLE"])


def _macro_word(statement: Statement) -> int | None:
    if statement.word == "CREATE":
        for at, token in enumerate(statement.tokens[1:5], start=1):
            if token.upper in MACRO_WORDS:
                return at
            if token.upper not in {"OR", "REPLACE", *_TEMPORARY}:
                return None
    return None


def _body(statement: Statement, reading: _Reading) -> None:
    if reading.manual:
        reading.statements.append(statement)
        return
    writer = _writes(statement)
    if writer is not None and reading.takes_statements and reading.statements:
        reading.after.append(statement)
    elif writer is not None:
        message = f"{writer.upper} writes, and a managed script only reads"
        hint = _MACRO if is_macro(statement) else _MANAGED
        reading.report("error", writer.start, message, hint, "script-writes")
    elif statement.word in QUERY_WORDS:
        reading.statements.append(statement)
    else:
        word = statement.tokens[0].value
        guess = nearest(word, ("SELECT", "WITH", "FROM", "ATTACH", "SET", "USE", "CREATE TEMP"))
        hint = f"did you mean {guess}?" if guess else "write setup statements, then one SELECT"
        message = f"`{as_written(word)}` begins no statement that a managed script may have"
        reading.report("error", statement.start, message, hint, "script-statement")


def _writes(statement: Statement) -> Token | None:
    """The word by which a statement writes, also after WITH or a leading FROM."""
    if statement.word in WRITE_WORDS:
        return statement.tokens[0]
    if statement.word not in {"WITH", "FROM"}:
        return None
    if not any(token.upper in _WRITES_LATER for token in statement.tokens):
        return None
    depth = 0
    for before, token in pairwise(statement.tokens):
        depth += (token.text == "(") - (token.text == ")")
        follows = before.text == ")" or before.kind in {NAME, WORD}
        if depth == 0 and follows and token.upper in _WRITES_LATER:
            return token
    return None


def _check_one_query(reading: _Reading, *, empty: bool, at: int) -> None:
    count = len(reading.statements)
    if reading.findings and any(found.severity == "error" for found in reading.findings):
        return
    if count == 0:
        message = "the script is empty" if empty else "the script has no SELECT"
        reading.report("error", at, message, "end it with one SELECT", "script-no-select")
    elif count > 1:
        message = f"the script has {count} SELECTs, and a managed script has one"
        second = reading.statements[1].start
        hint = "keep the last one; name the others with CREATE TEMP VIEW ... AS"
        reading.report("error", second, message, hint, "script-selects")


def _check_before_query(statement: Statement, reading: _Reading) -> None:
    if reading.statements and not reading.manual:
        message = f"{statement.word} comes after the SELECT, and nothing may"
        reading.report("error", statement.start, message, "move it above", "script-after-select")


def _attach(statement: Statement, reading: _Reading) -> bool:
    """``ATTACH [IF NOT EXISTS] 'ducklake://lake' [AS alias] [(options)]``."""
    _check_before_query(statement, reading)
    strings = [token for token in statement.tokens if token.kind == STRING]
    uri = strings[0] if strings else statement.tokens[0]
    asset = parse_asset(uri.value) if strings else None
    if asset is None or asset.kind != "ducklake":
        message = f"`{uri.value}` cannot be attached"
        hint = "write ATTACH 'ducklake://main' AS dl: lakes are named in penstock.toml"
        reading.report("error", uri.start, message, hint, "attach")
        return True
    lake = reading.names.lake(asset.path.rstrip("/"))
    if lake is None or lake not in reading.names.lakes:
        unknown = reading.names.unknown_lake(asset.path)
        reading.report("error", uri.start, str(unknown), unknown.hint, "unknown-lake")
        lake = asset.path
    said = [token.upper for token in statement.tokens]
    alias = statement.tokens[said.index("AS") + 1].value if "AS" in said[:-1] else lake
    aliases = {**reading.names.aliases, alias.casefold(): lake}
    reading.names = replace(reading.names, aliases=aliases)
    return True


def _use(statement: Statement, reading: _Reading) -> bool:
    """``USE lake`` or ``USE lake.schema``."""
    _check_before_query(statement, reading)
    parts = [token.value for token in statement.tokens[1:] if token.text != "."]
    lake = reading.names.lake(parts[0]) if parts else None
    if lake is None or len(parts) > 2:
        name = ".".join(parts)
        unknown = reading.names.unknown_lake(parts[0] if parts else name)
        reading.report("error", statement.start, str(unknown), unknown.hint, "unknown-lake")
        return True
    schema = parts[1] if len(parts) == 2 else DEFAULT_SCHEMA
    reading.names = replace(reading.names, use=(lake, schema))
    return True


def _expanded_before(statement: Statement, reading: _Reading) -> bool:
    """Return what `penstock.model.macros.script_macros` has made of it is in
    the text of the query.
    """
    if not (is_temporary(statement) or is_variable(statement)):
        return False
    _check_before_query(statement, reading)
    return True


def _set(statement: Statement, reading: _Reading) -> bool:
    if _expanded_before(statement, reading):
        return True
    _check_before_query(statement, reading)
    said = [token.value for token in statement.tokens[1:]]
    marker = next((n for n, word in enumerate(said) if word in {"=", "TO", "to"}), None)
    name = "".join(said[:marker])
    if marker is not None and name.startswith("spark."):
        reading.settings.append(Setting(name, "".join(said[marker + 1 :])))
        return True
    message = f"SET {name} is not a setting of Spark and is passed over"
    reading.report("warning", statement.start, message, "take it away", "ignored-statement")
    return True


def _ignored(statement: Statement, reading: _Reading) -> bool:
    _check_before_query(statement, reading)
    message = f"{statement.word} means nothing here and is passed over"
    reading.report("warning", statement.start, message, "take it away", "ignored-statement")
    return True


def _transaction(statement: Statement, reading: _Reading) -> bool:
    message = f"{statement.word} cannot stand in a script: all of it is one transaction"
    reading.report("error", statement.start, message, "take it away", "script-transaction")
    return True


def _create(statement: Statement, reading: _Reading) -> bool:
    """``CREATE [OR REPLACE] TEMP VIEW|TABLE [IF NOT EXISTS] name AS query``, else a write."""
    said = [token.upper for token in statement.tokens]
    head = [word for word in said[1:4] if word not in {"OR", "REPLACE"}]
    if _expanded_before(statement, reading):
        return True
    if not head or head[0] not in _TEMPORARY:
        return False
    _check_before_query(statement, reading)
    position = next((n for n, word in enumerate(said) if word in {"VIEW", "TABLE"}), None)
    query_at = said.index("AS") + 1 if "AS" in said else 0
    if position is None or not 0 < query_at < len(said) or said[query_at] not in QUERY_WORDS:
        message = "only CREATE TEMP VIEW, TABLE or MACRO can be part of a script"
        hint = "write CREATE TEMP VIEW name AS SELECT ..."
        reading.report("error", statement.start, message, hint, "create-temp")
        return True
    named = [t for t in statement.tokens[position + 1 : query_at - 1] if t.upper not in _IF]
    query = Statement(statement.tokens[query_at:])
    if len(named) != 1 or named[0].value.casefold() in {
        temporary.name.casefold() for temporary in reading.temporaries
    }:
        message = "a temporary table has one plain name of its own, and no list of columns"
        hint = "write CREATE TEMP VIEW name AS SELECT ..."
        reading.report("error", statement.tokens[position].start, message, hint, "create-temp")
        return True
    reading.temporaries.append(Temporary(named[0].value, query))
    return True


def _refused_block(statement: Statement, reading: _Reading) -> bool:
    """Return what begins a block of other tools that would be more than one query."""
    message = f"{statement.word} is not in this version"
    reading.report("error", statement.start, message, _BLOCKS[statement.word], "script-block")
    return True


_END = re.compile(r"(_QUERY|_STATEMENT)?_BEGIN$")
_BLOCKS = {
    "ON_VIRTUAL_UPDATE_BEGIN": "take the block away: no views stand in front of tables",
    "JINJA_QUERY_BEGIN": "write the query as plain SQL",
    "JINJA_STATEMENT_BEGIN": "write the statement as plain SQL",
}
_IF = ("IF", "NOT", "EXISTS")
_SETUP: dict[str, Callable[[Statement, _Reading], bool]] = {
    "ATTACH": _attach,
    "USE": _use,
    "SET": _set,
    "RESET": _expanded_before,
    "CREATE": _create,
    **dict.fromkeys(IGNORED_WORDS, _ignored),
    **dict.fromkeys(_BLOCKS, _refused_block),
}
_MANUAL_SETUP = {
    **{word: _SETUP[word] for word in ("ATTACH", "USE", *IGNORED_WORDS)},
    **dict.fromkeys(("SET", "RESET", "CREATE"), _expanded_before),
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "ROLLBACK", "ABORT", "END"), _transaction),
}
