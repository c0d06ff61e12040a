"""Scripts of a project into models, and why files make none: none is passed over in silence.

The only place of the model room that reads files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from penstock.errors import Diagnostic, Location, ModelError
from penstock.model.definition.build_model import OF_MODEL, ScriptFile, build_model, variables_of
from penstock.model.definition.embedding import embed, embed_in
from penstock.model.definition.external import (
    External,
    external_files,
    read_externals,
    wrong_entries,
)
from penstock.model.definition.graph import check_graph
from penstock.model.definition.model import Model, TestScript
from penstock.model.definition.own_tables import placed
from penstock.model.definition.tests import Asking, audit_script, test_script
from penstock.model.definition.triggers import check_cascades
from penstock.model.definition.warnings import closed_intervals, without_start
from penstock.model.files.header_lines import read_header
from penstock.model.headers import read as ddl
from penstock.model.headers.annotation import declare, parse
from penstock.model.headers.audit_blocks import (
    AUDIT,
    DIRECTORY,
    AuditBlock,
    read_audit_blocks,
    split_audits,
)
from penstock.model.headers.syntax import begins_model
from penstock.model.macros.at_scope import AtMacros
from penstock.model.macros.macro_libraries import DIRECTORY as LIBRARIES
from penstock.model.macros.macro_libraries import FileText, Libraries, find_libraries
from penstock.model.macros.python_macros import PythonMacros
from penstock.model.macros.script_macros import ScriptMacros
from penstock.model.project.defaults import Defaults
from penstock.model.project.defaults import read as read_defaults
from penstock.model.project.not_models import SCRIPT_SUFFIXES, report_other_languages, report_script
from penstock.model.project.python_models import SUFFIX as PYTHON
from penstock.model.project.python_models import read_python
from penstock.model.project.serialized import AskedMacros, Packed, pack, unpack
from penstock.model.script.arguments import declared
from penstock.model.script.declaration import Declaration
from penstock.model.script.sources import TableSource
from penstock.model.time.time_macros import TIMES
from penstock.model.values.asset import DEFAULT_SCHEMA, Macros, Names, TableName
from penstock.model.values.custom_strategy import Materialization, materializations
from penstock.model.values.data_test import CustomTest
from penstock.settings import refused_settings
from penstock.settings.project_settings import ModelDefaults
from penstock.settings.project_settings import Value as VariableValue
from penstock.sql.tokens import words


@dataclass(frozen=True, slots=True)
class Loaded:
    """Models in order of name, and every finding in order of file and line.

    ``place`` is where they were read, with what their declarations may name; ``moved`` are tables
    that are elsewhere in this environment (`Names`).
    """

    models: tuple[Model, ...]
    diagnostics: tuple[Diagnostic, ...]
    externals: tuple[External, ...] = ()
    libraries: Libraries = field(default_factory=Libraries)
    place: Place | None = None
    moved: Mapping[str, TableName] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(finding for finding in self.diagnostics if finding.severity == "error")

    def checked(self) -> Loaded:
        """Raise ModelError with every finding where one of them is an error."""
        if self.errors:
            raise ModelError(self.diagnostics)
        return self


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the models directory. ``tests`` are the custom tests that its header names."""

    path: Path
    findings: tuple[Diagnostic, ...]
    model: Model | None = None
    tests: tuple[TestScript, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a project's scripts, and what its settings say of them."""

    root: Path
    models: Path
    names: Names
    dialect: str
    infer_names: bool = False
    cache: Packed | None = None
    asked: AskedMacros | None = None
    defaults: Defaults = field(default_factory=Defaults)
    variables: Mapping[str, VariableValue] = field(default_factory=dict)
    audits: Mapping[str, AuditBlock] = field(default_factory=dict)
    materializations: Mapping[str, Materialization] = field(default_factory=dict)
    python: PythonMacros = field(default_factory=PythonMacros)
    libraries: Libraries = field(default_factory=Libraries)
    read: dict[Path, FileText | None] = field(default_factory=dict, compare=False)

    @property
    def macros(self) -> ScriptMacros:
        at = AtMacros(functions=self.python.functions, settings=self.variables)
        return ScriptMacros(at, self.libraries)

    def key(self, path: Path, text: str) -> str:
        """Of all that a file's meaning depends on, if it depends on no other file."""
        of = self.names
        names = (of.lakes, of.default_lake, sorted(of.roots), self.dialect, self.infer_names)
        blocks = [(name, block.query, block) for name, block in self.audits.items()]
        places = (str(self.root), str(self.models), str(path))
        moved = tuple(self.names.moved.items())
        values = sorted(self.variables.items())
        of_settings = (self.defaults, values)
        said = repr((places, names, of_settings, blocks, self.libraries.digest, text, *moved))
        return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()

    def applied(self, declaration: Declaration, name: str) -> Declaration:
        """Return a declaration with the project's defaults, its tables where they are."""
        found = self.defaults.applied(declaration, name)
        return placed(found, self.names) if self.names.moved else found

    @property
    def lookups(self) -> int:
        """Return how often something else than its own text was asked for."""
        return self.python.called + (0 if self.asked is None else self.asked.count)

    def script(self, path: Path) -> FileText | None:
        """Return a test's script, read once for all models; ``None`` where there is no file."""
        if path not in self.read:
            self.read[path] = _read(path) if path.is_file() else None
        return self.read[path]

    def digest(self, path: Path) -> str | None:
        """Return the hash of a test's script; ``None`` where there is none that can be read."""
        found = self.script(path)
        if found is None or found[0] is None:
            return None
        return hashlib.sha256(found[0].encode("utf-8", "surrogatepass")).hexdigest()


def model_of_text(loaded: Loaded, path: Path, text: str) -> Model | None:
    """Return the model that the script at ``path`` would be with another text, among the others of
    its project as they are; None where that has errors.
    """
    if loaded.place is None:
        return None
    model = _load(path, (text, ()), replace(loaded.place, cache=None)).model
    return None if model is None else embed_in(model, loaded.models)


def load_models(
    root: Path,
    *,
    lakes: Collection[str],
    models_dir: str | Path = "models",
    default_lake: str | None = None,
    roots: frozenset[str] = frozenset(),
    dialect: str = "spark",
    infer_names: bool = False,
    macros: Macros | None = None,
    cache: Packed | None = None,
    defaults: Sequence[ModelDefaults] = (),
    variables: Mapping[str, VariableValue] = MappingProxyType({}),
    moved: Mapping[str, TableName] | None = None,
) -> Loaded:
    """The models of the project at ``root`` that can be read, and what is wrong with the others.

    ``macros`` are those that scripts in DuckDB's dialect may call; with ``infer_names`` a model
    without a name has that of its path. ``cache`` has files that were read before, and gets what
    was not in it; ``moved`` are tables that are elsewhere (`Names`).
    """
    asked = None if macros is None else AskedMacros(macros)
    names = Names(tuple(lakes), default_lake, macros=asked, moved=moved or {}, roots=roots)
    known, wrong_defaults = read_defaults(defaults)
    directory = root / models_dir
    place = Place(root, directory, names, dialect, infer_names, cache, asked, known, variables)
    if not place.models.is_dir():
        return Loaded((), (_no_directory(place),))
    audits, audit_findings = _audits(place)
    strategies, wrong_strategies = materializations(root)
    place = replace(place, audits=audits, materializations=strategies, python=PythonMacros.of(root))
    every = sorted(place.models.rglob("*"))
    texts = {path: _read(path) for path in every if path.name.endswith((".sql", PYTHON))}
    foreign = [p for p in every if p.suffix.lower() in SCRIPT_SUFFIXES and p not in texts]
    others = {path: _read(path) for path in sorted((root / LIBRARIES).rglob("*.sql"))}
    scripts = {path: read for path, read in texts.items() if path.suffix != PYTHON}
    libraries, wrong_libraries = find_libraries(scripts, others, root, place.models, dialect)
    place = replace(place, libraries=libraries)
    _pack_new(scripts, place)
    files = [
        _load(path, read, place) for path, read in texts.items() if path not in libraries.paths
    ]
    tests = {script.query.path for file in files for script in file.tests}
    findings = [each for file in files if file.path not in tests for each in file.findings]
    findings += (*audit_findings, *place.python.findings, *wrong_strategies, *wrong_libraries)
    findings += (*wrong_defaults, *_reserved(place))
    models = [file.model for file in files if file.model is not None]
    models, wrong = _together(sorted(models, key=lambda model: model.name), place, texts)
    findings += report_other_languages(foreign) if foreign else ()
    externals, found = _externals(place)
    findings += (*wrong, *found, *wrong_entries(externals, models))
    return Loaded(tuple(models), tuple(findings), externals, libraries, place)


def _together(
    models: list[Model], place: Place, paths: Iterable[Path]
) -> tuple[list[Model], list[Diagnostic]]:
    """The models with EMBEDDED ones in their readers, and what is wrong with them as a project.

    ``paths`` are those of all scripts, those that are no models for an error among them.
    """
    names = [path.relative_to(place.models).with_suffix("").as_posix() for path in paths]
    findings = list(place.defaults.idle(names))
    wrong = check_graph(models)
    findings += wrong
    if not wrong:
        embedding, found = embed(models)
        models = list(embedding)
        findings += (*found, *without_start(models), *check_cascades(models))
    findings += _forgotten_aliases(models)
    findings += closed_intervals(models)
    if any((place.root / name).is_file() for name in refused_settings.FILE_NAMES):
        findings += refused_settings.findings(place.root)
    return models, findings


def _no_directory(place: Place) -> Diagnostic:
    message = "the directory of models does not exist"
    hint = refused_settings.dbt_hint(place.root)
    hint = hint or "make it, or name another one in penstock.toml: [project] models = ..."
    return Diagnostic("error", message, Location(place.models), hint, "models-missing")


def _reserved(place: Place) -> Iterator[Diagnostic]:
    """Variables of the project whose names already mean something in every model."""
    for name in sorted(place.variables.keys() & (TIMES | OF_MODEL)):
        message = f"the variable {name} has the name of a predefined macro variable"
        where = Location(place.root / "penstock.toml")
        yield Diagnostic("error", message, where, "give it another name", "variables")


def _audits(place: Place) -> tuple[dict[str, AuditBlock], tuple[Diagnostic, ...]]:
    """The audits of the files below ``audits/``, by name."""
    blocks: dict[str, AuditBlock] = {}
    findings: list[Diagnostic] = []
    directory = place.root / DIRECTORY
    for path in sorted(directory.rglob("*.sql")) if directory.is_dir() else ():
        text, found = _read(path)
        if text is not None:
            first, starts = split_audits(text, place.dialect)
            if not starts or words(text[:first], place.dialect):
                hint = "write AUDIT (name x); SELECT * FROM @this_model WHERE ...;"
                where = Location(path, 1, 1)
                message = "the file does not begin with AUDIT (...)"
                found = (Diagnostic("error", message, where, hint, "audit"),)
            else:
                read, found = read_audit_blocks(text, path, starts, place.dialect)
                twice = [block for name, block in read.items() if name in blocks]
                found = (*found, *(_twice(block, blocks[block.name]) for block in twice))
                blocks |= read
        findings += found
    return blocks, tuple(findings)


def _twice(block: AuditBlock, other: AuditBlock) -> Diagnostic:
    place = f"{other.location.path}:{other.location.line}"
    message = f"there are two audits {block.name}, the other is at {place}"
    return Diagnostic("error", message, block.location, "give one another name", "audit")


def _externals(place: Place) -> tuple[tuple[External, ...], tuple[Diagnostic, ...]]:
    externals: list[External] = []
    findings: list[Diagnostic] = []
    for path in external_files(place.root):
        text, found = _read(path)
        if text is not None:
            read, found = read_externals(text, path, place.names)
            externals += read
        findings += found
    return tuple(externals), tuple(findings)


def _forgotten_aliases(models: Sequence[Model]) -> Iterator[Diagnostic]:
    """``dl.orders`` without ATTACH is the table ``orders`` of a schema ``dl``: seldom meant."""
    made = {model.target for model in models}
    for model in models:
        for source in model.query.mentioned:
            if not isinstance(source, TableSource):
                continue
            table = source.table
            meant = replace(table, schema=DEFAULT_SCHEMA)
            if table not in made and meant in made and source.location is not None:
                message = f"no model makes {table}, but one makes {meant}"
                attach = f"ATTACH 'ducklake://{table.lake}' AS {table.schema}"
                hint = f"if {table.schema} is a lake: {attach}"
                yield Diagnostic("warning", message, source.location, hint, "forgotten-alias")


def _load(path: Path, read: FileText, place: Place) -> _File:
    text, findings = read
    if text is None:
        return _File(path, findings)
    if path.suffix == PYTHON:
        return _python(path, text, place)
    if place.cache is None:
        return _understood(path, text, place)
    key = place.key(path, text)
    packed = place.cache.get(key)
    known = None if packed is None else unpack(packed, place.asked)
    if isinstance(known, _Cached) and known.is_current(place):
        return known.file
    before = place.lookups
    file = _understood(path, text, place)
    # A file that makes no model is read again each time: what it lacks may be in other files.
    if place.lookups == before and file.model is not None and file.model.custom is None:
        queries = (file.model.query, *(script.query for script in file.tests))
        place.cache[key] = pack(_Cached.of(file, file.model, place), queries)
    return file


def _pack_new(scripts: Mapping[Path, FileText], place: Place) -> None:
    """Add scripts to the cache that it lacks, by several processes if they are very many."""
    cache = place.cache
    if cache is None or len(cache) >= len(scripts):
        return
    # Late: it happens once in a project.
    from penstock.model.project.processes import pack_in_processes

    new = [
        (path, text)
        for path, (text, _) in scripts.items()
        if text is not None and path not in place.libraries.paths
        if place.key(path, text) not in cache
    ]

    def pack_script(item: tuple[Path, str]) -> tuple[str, bytes] | None:
        path, text = item
        packed: dict[str, bytes] = {}
        _load(path, (text, ()), replace(place, cache=packed))
        return next(iter(packed.items()), None)

    cache.update(pack_in_processes(new, pack_script))


@dataclass(frozen=True, slots=True)
class _Cached:
    """A file as the cache has it. ``scripts`` are all places where scripts of its tests were looked
    for, with the hash of what was there.
    """

    file: _File
    scripts: tuple[tuple[Path, str | None], ...] = ()

    @classmethod
    def of(cls, file: _File, model: Model, place: Place) -> _Cached:
        names = dict.fromkeys(t.path for t in model.data_tests if isinstance(t, CustomTest))
        looked = (path for name in names for path in _looked_at(name, place))
        return cls(file, tuple((path, place.digest(path)) for path in looked))

    def is_current(self, place: Place) -> bool:
        return all(place.digest(path) == known for path, known in self.scripts)


def with_own_audits(
    text: str, path: Path, place: Place
) -> tuple[str, Place, tuple[Diagnostic, ...]]:
    """A script without the AUDIT blocks behind its query, which are audits of its model alone."""
    end, starts = split_audits(text, place.dialect) if AUDIT in text.upper() else (len(text), ())
    if not starts:
        return text, place, ()
    own, findings = read_audit_blocks(text, path, starts, place.dialect)
    return text[:end], replace(place, audits={**place.audits, **own}), findings


def _understood(path: Path, text: str, place: Place) -> _File:
    text, place, inline = with_own_audits(text, path, place)
    declaration, findings = read_declaration(text, path, place)
    findings = (*findings, *inline)
    if declaration is None:
        return _File(path, findings)
    name = path.relative_to(place.models).with_suffix("").as_posix()
    declaration = place.applied(declaration, name)
    own = declared(text, path, partition=None)[0]
    tests, test_findings = _test_scripts(declaration, [arg.name for arg in own], place)
    uses, unknown = place.libraries.used(parse(text, path)[0], path)
    macros = place.macros.using(uses)
    script = ScriptFile(name, text, declaration, tests, macros, root=place.root)
    findings = (*findings, *test_findings, *unknown)
    model, findings = build_model(script, place.names, findings)
    return _File(path, findings, model, tests)


def _python(path: Path, text: str, place: Place) -> _File:
    """A Python step; what it means depends on the files that it imports too."""
    script = read_python(text, path, place.root, place.names, place.dialect)
    findings = script.findings
    if script.declaration is None or script.step is None:
        return _File(path, findings)
    if path.with_suffix(".sql").is_file():
        message = f"there are two steps of this name: {path.stem}.sql stands beside it"
        findings = (*findings, Diagnostic("error", message, Location(path), "rename one", "name"))
    own = [argument.name for argument in script.step.arguments]
    name = path.relative_to(place.models).with_suffix("").as_posix()
    declaration = place.applied(script.declaration, name)
    tests, test_findings = _test_scripts(declaration, own, place)
    file = ScriptFile(name, text, declaration, tests, place.macros, script.step, root=place.root)
    model, findings = build_model(file, place.names, (*findings, *test_findings))
    return _File(path, findings, model, tests)


def read_declaration(
    text: str, path: Path, place: Place
) -> tuple[Declaration | None, tuple[Diagnostic, ...]]:
    """Return what a script declares, in either form; what is wrong with it, or why it is not a
    model.
    """
    if path.suffix == PYTHON:
        python = read_python(text, path, place.root, place.names, place.dialect)
        return python.declaration, python.findings
    annotations, findings = parse(text, path, dialect=place.dialect)
    start = read_header(text, path).end
    if begins_model(text, start):
        script = ddl.Script(
            text,
            path,
            start,
            annotations,
            place.dialect,
            path.relative_to(place.models).with_suffix("").parts if place.infer_names else (),
            place.root,
            place.audits,
            place.materializations,
        )
        return ddl.declare(script, place.names)
    if not annotations.in_pipeline and annotations.materialize is None:
        return None, report_script(text, path, findings)
    return declare(text, path, annotations, place.names, findings)


def _read(path: Path) -> FileText:
    try:
        return path.read_text(encoding="utf-8-sig"), ()
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8 (byte {error.start})"
        return None, (Diagnostic("error", message, Location(path), "save it as UTF-8", "encoding"),)
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        return None, (Diagnostic("error", message, Location(path), "check its rights", "file"),)


def _test_scripts(
    declaration: Declaration, own: Collection[str], place: Place
) -> tuple[tuple[TestScript, ...], tuple[Diagnostic, ...]]:
    """``own`` are the arguments of the model's script."""
    scripts: list[TestScript] = []
    findings: list[Diagnostic] = []
    for test, where in declaration.placed_tests:
        if isinstance(test, CustomTest):
            macros = place.macros.saying(**variables_of(declaration))
            asking = Asking(where, place.names, own, declaration.partition, macros)
            block = place.audits.get(test.path)
            script, found = (
                _test_script(test, asking, place)
                if block is None
                else audit_script(test, block, declaration.target, asking)
            )
            findings += found
            scripts += [script] if script else []
    return tuple(scripts), tuple(findings)


def _test_script(
    test: CustomTest, asking: Asking, place: Place
) -> tuple[TestScript | None, tuple[Diagnostic, ...]]:
    name = test.path
    path = [*_looked_at(name, place)][-1]
    read = place.script(path)
    if read is None:
        message = f"test script {name} does not exist"
        hint = f"write {place.root / name}.sql, one SELECT of the rows that fail"
        return None, (Diagnostic("error", message, asking.where, hint, "test-missing"),)
    text, findings = read
    if text is None:
        return None, findings
    own, findings = parse(text, path, dialect=place.dialect)
    uses, unknown = place.libraries.used(own, path)
    asking = replace(asking, macros=asking.macros.using(uses))
    script, found = test_script(test, text, path, own.dialect, asking)
    return script, (*findings, *unknown, *found)


def _looked_at(name: str, place: Place) -> Iterator[Path]:
    """Yield the places where a test's script may be, up to the one where it is."""
    for directory in (place.root, place.models):
        for path in (directory / name, directory / f"{name}.sql"):
            yield path
            if place.script(path) is not None:
                return
