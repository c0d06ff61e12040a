"""Order models by what they read, and find them by their names, tables and files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from heapq import heapify, heappop, heappush

from penstock.errors import ArgumentError, Diagnostic, Location, ModelError
from penstock.model.definition.by_model import ByModel
from penstock.model.definition.model import Model
from penstock.model.script.file_uris import asset_key, may_be
from penstock.model.script.sources import table_read
from penstock.model.values.asset import TableName
from penstock.model.values.history import current_view
from penstock.sql.identifiers import fold, listed, nearest

Edges = Mapping[str, tuple[str, ...]]
Makers = Mapping[str, str]
_MOST_REMEMBERED = 2_000  # models whose upstream is remembered: it takes the square of the room


@dataclass(frozen=True)
class Graph:
    """``parents`` maps each model's name to those directly before it, in order of mention."""

    parents: Edges

    @classmethod
    def of(cls, models: Iterable[Model]) -> Graph:
        """Raises :class:`ModelError` for a cycle, or for two models that make one table."""
        known = sorted(models, key=lambda model: model.name)
        findings = check_graph(known)
        if findings:
            raise ModelError(findings)
        return cls(_with_tests(known, _edges(known)))

    def order(self) -> tuple[str, ...]:
        """Every name after its parents; by name where the graph leaves it open."""
        return self._order

    @cached_property
    def _order(self) -> tuple[str, ...]:  # a plan asks for it for each of its models
        waiting = {name: len(parents) for name, parents in self.parents.items()}
        children = self._children
        ready = [name for name, count in waiting.items() if count == 0]
        heapify(ready)
        ordered: list[str] = []
        while ready:
            name = heappop(ready)
            ordered.append(name)
            for child in children[name]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    heappush(ready, child)
        return tuple(ordered)

    def ordered(self, models: Iterable[Model]) -> list[Model]:
        """The models of the graph, each after its parents."""
        by_name = {model.name: model for model in models}
        return [by_name[name] for name in self.order()]

    def levels(self) -> tuple[tuple[str, ...], ...]:
        """Names that may run side by side, level by level."""
        depth: dict[str, int] = {}
        for name in self.order():
            depth[name] = max((depth[parent] + 1 for parent in self.parents[name]), default=0)
        count = max(depth.values(), default=-1) + 1
        return tuple(tuple(sorted(n for n in depth if depth[n] == level)) for level in range(count))

    def upstream(self, name: str) -> tuple[str, ...]:
        """Everything before ``name``, however far, in order. ``KeyError`` for an unknown name."""
        reached = self._upstream.get(name)
        if reached is None:
            reached = self._reach(name, self.parents)
            if len(self._upstream) < _MOST_REMEMBERED:
                self._upstream[name] = reached
        return reached

    def downstream(self, name: str) -> tuple[str, ...]:
        """Everything after ``name``, however far, in order. ``KeyError`` for an unknown name."""
        return self._reach(name, self._children)

    def children(self) -> Mapping[str, tuple[str, ...]]:
        """Return those directly after each model, by its name."""
        return self._children

    @cached_property
    def _children(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {name: [] for name in self.parents}
        for name, parents in self.parents.items():
            for parent in parents:
                found[parent].append(name)
        return {name: tuple(children) for name, children in found.items()}

    def _reach(self, name: str, edges: Edges) -> tuple[str, ...]:
        return tuple(sorted(_reachable(name, edges), key=self._positions.__getitem__))

    @cached_property
    def _upstream(self) -> dict[str, tuple[str, ...]]:  # a plan asks for it in each of its phases
        return {}

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.order())}


def chains(models: Iterable[Model]) -> tuple[tuple[str, ...], ...]:
    """The names of the partitioned models, those together that partitioned inputs connect.

    Chains, and names within one, are in the order of ``models``.
    """
    edges = _edges([model for model in models if model.partition is not None])
    leaders = {name: name for name in edges}  # towards one name of each chain

    def find_leader(name: str) -> str:
        while leaders[name] != name:
            leaders[name] = name = leaders[leaders[name]]
        return name

    for name, parents in edges.items():
        for parent in parents:
            leaders[find_leader(parent)] = find_leader(name)
    members: dict[str, list[str]] = {}
    for name in edges:
        members.setdefault(find_leader(name), []).append(name)
    return tuple(map(tuple, members.values()))


def check_graph(models: Sequence[Model]) -> tuple[Diagnostic, ...]:
    """Tables that two models make, else cycles; ``models`` in order of name."""
    return _twice(models) or _cycles(models)


def table_key(table: TableName) -> str:
    """The same for all spellings of one table's name."""
    return asset_key(str(table))


def makers_of(models: Iterable[Model]) -> Makers:
    """The name of the model that makes each table, by `table_key`; and each view of the current
    versions of a history."""
    return {table_key(table): model.name for model in models for table in made_by(model)}


def makers_by_table(models: Iterable[Model]) -> Mapping[str, Model]:
    """Return the model that makes each table, and each view that comes with one.

    Args:
        models: The models of a project.

    Returns:
        Models by `table_key`.
    """
    return {table_key(table): model for model in models for table in made_by(model)}


def made_by(model: Model) -> tuple[TableName, ...]:
    """The table that a model makes, and the view that comes with it."""
    view = current_view(model.target, model.history)
    return (model.target,) if view is None else (model.target, view)


def _edges(models: Sequence[Model]) -> dict[str, tuple[str, ...]]:
    makers = makers_of(models)
    files = _written(models)
    edges: dict[str, tuple[str, ...]] = {}
    for model in models:
        tables = (makers.get(table_key(table)) for table in model.inputs)
        directories = model.python is None  # what Python reads is a file
        parents = dict.fromkeys((*tables, *_writers(model.files_read, files, directories)))
        edges[model.name] = tuple(p for p in parents if p is not None and p != model.name)
    return edges


def _written(models: Sequence[Model]) -> list[tuple[str, str]]:
    """The files that models write, each with the name of its model."""
    return [(file, model.name) for model in models for file in model.files_written]


def _writers(
    read: Iterable[str], files: Sequence[tuple[str, str]], directories: bool
) -> Iterator[str]:
    """The models that may write what is read; a query may read a directory."""
    for pattern in read:
        for file, name in files:
            if may_be(pattern, file, directories=directories):
                yield name


def _with_tests(models: Sequence[Model], edges: dict[str, tuple[str, ...]]) -> Edges:
    """Let a model wait for what its tests look at, where that closes no circle."""
    makers, files = makers_of(models), _written(models)
    for model in models:
        tables = (makers.get(table_key(table), model.name) for table in model.test_reads)
        for parent in (*tables, *_writers(model.files_tested, files, directories=True)):
            known = (*edges[model.name], model.name)
            if parent not in known and model.name not in _reachable(parent, edges):
                edges[model.name] = (*edges[model.name], parent)
    return edges


def _reachable(name: str, edges: Edges) -> frozenset[str]:
    reached: set[str] = set()
    waiting = list(edges[name])
    while waiting:
        other = waiting.pop()
        if other not in reached:
            reached.add(other)
            waiting.extend(edges[other])
    return frozenset(reached)


def _twice(models: Sequence[Model]) -> tuple[Diagnostic, ...]:
    first: dict[str, Model] = {}
    findings: list[Diagnostic] = []
    for model in sorted(models, key=lambda each: current_view(each.target, each.history) is None):
        for table in made_by(model):
            other = first.setdefault(table_key(table), model)
            if other is model:
                continue
            message = f"{table} is made by two models: {other.path} and {model.path}"
            hint, rule = "let one of them make another table", "two-makers"
            if table_key(table) != table_key(other.target):
                message = (
                    f"{table} is reserved: it is the view of what is current in {other.target}"
                )
                hint, rule = "give the table of this model another name", "history-view"
            place = model.place("target")
            findings.append(Diagnostic("error", message, place, hint, rule))
    return tuple(findings)


def _cycles(models: Sequence[Model]) -> tuple[Diagnostic, ...]:
    """One finding for each circle that can be told apart; the files are its path."""
    by_name = {model.name: model for model in models}
    edges = _edges(models)
    findings: list[Diagnostic] = []
    while (circle := _circle(edges)) is not None:
        path = " -> ".join(str(by_name[name].path) for name in (*circle, circle[0]))
        model = by_name[circle[0]]
        findings.append(
            Diagnostic(
                "error",
                f"the models depend on each other: {path}",
                _place(model, by_name[circle[1 % len(circle)]]),
                "let one of them read something else",
                "cycle",
                {"cycle": list(circle)},
            )
        )
        edges = {
            name: tuple(set(edges[name]) - set(circle)) for name in edges if name not in circle
        }
        edges = {name: tuple(p for p in parents if p in edges) for name, parents in edges.items()}
    return tuple(findings)


def _circle(edges: Edges) -> tuple[str, ...] | None:
    """The names of one circle, each reading the next, from its first name on."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        names = error.args[1][:-1][::-1]
        start = names.index(min(names))
        return tuple(names[start:] + names[:start])
    return None


def _place(model: Model, parent: Model) -> Location:
    """Return where ``model`` says that it reads what ``parent`` makes."""
    made = {table_key(table) for table in made_by(parent)}
    for source in model.query.sources:
        read = table_read(source)
        if read is not None and table_key(read) in made and source.location is not None:
            return source.location
    for source in model.query.files:
        if parent.files_written and source.location is not None:
            return source.location
    for name, place in model.places.items():
        if name.startswith("on:"):
            return place
    return Location(model.path)


def fingerprint_models(
    models: Sequence[Model], graph: Graph, settings: object
) -> Mapping[str, str]:
    """Fingerprint models: equal ones have equal plans over equal catalogs.

    A fingerprint covers the text of a model and those of all models above it, since which slices a
    model needs may follow from the query of a model two steps above.

    Args:
        models: All models of the graph.
        graph: Which model reads which.
        settings: The settings that results depend on, with a `repr` that tells them apart.

    Returns:
        The fingerprints, by the names of models; each is derived when it is asked for.
    """
    by_name = {model.name: model for model in models}
    fingerprints: dict[str, str] = {}

    def derive(missing_models: Sequence[Model]) -> Mapping[str, str]:
        waiting = [model.name for model in missing_models]
        while waiting:
            name = waiting[-1]
            above = [parent for parent in graph.parents[name] if parent != name]
            missing = [parent for parent in above if parent not in fingerprints]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if name not in fingerprints:
                parents = [fingerprints[parent] for parent in above]
                content = repr((settings, _own_parts(by_name[name]), parents))
                fingerprints[name] = sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        return fingerprints

    return ByModel(models, derive)


def _own_parts(model: Model) -> Mapping[str, object]:
    query = model.query
    return {
        "name": model.name,
        "target": str(model.target),
        "definition": model.definition_hash,
        "text": query.source.text,
        "embedded": [inner.source.text for inner in query.embeds.values()],
        "slices": (model.slicing, model.partition, model.time_range),
        "strategy": (model.strategy.name, model.keys, model.forward_only, model.own),
        "reads": (model.reads, model.on, model.depends_on, model.input_needs),
        "arguments": query.arguments,
        "looks at rows": model.looks_at_rows,
    }


def names_of(model: Model) -> tuple[str, ...]:
    """All that a model is called without its file: its own name, and those of its table."""
    target = model.target
    return model.name, target.qualified, target.full, str(target)


def paths_of(model: Model) -> Iterator[str]:
    """Yield the model's name and file, from the models directory, from above it, and from the root
    of the file system; each with and without the suffix.
    """
    path = model.path.as_posix()
    file = f"{model.name}{model.path.suffix}"
    yield from (model.name, file)
    above, _, rest = path.rpartition(f"/{file}")
    if above and not rest:
        directory = above.rpartition("/")[2]
        yield from (f"{directory}/{model.name}", f"{directory}/{file}")
    yield from (path, path.removesuffix(model.path.suffix))


class Naming:
    """The models of a project by what they may be called. Indexes are made when they are needed."""

    def __init__(self, models: Iterable[Model]) -> None:
        """In the order in which messages name them."""
        self.models = tuple(models)
        self._indexes: dict[int, Mapping[str, list[Model]]] = {}

    def find(self, text: str) -> Sequence[Model]:
        """Return the models with this name; several where it is short for that of each."""
        for number, (forms, key) in enumerate(_WAYS):
            found = self._index(number, forms, key).get(key(text))
            if found:
                return found
        return ()

    def one(self, text: str) -> Model | None:
        """Return the model with this name. Raises ArgumentError where several have it."""
        found = self.find(text)
        if len(found) > 1:
            names = [model.name for model in found]
            raise ArgumentError(
                f"{text!r} is short for several models: {listed(names)}", hint="name one of them"
            )
        return found[0] if found else None

    def unknown(self, text: str) -> ArgumentError:
        """Return the error of a name that no model has, with the nearest that one has."""
        names = [model.name for model in self.models]
        near = nearest(text, [name for model in self.models for name in names_of(model)])
        if any(name.startswith(f"{text}/") for name in names):
            near = f"{text}/"
        hint = f"did you mean {near!r}?" if near else f"models are {listed(names) or 'none'}"
        return ArgumentError(f"model {text!r} does not exist", hint=hint)

    def _index(
        self, number: int, forms: Callable[[Model], Iterable[str]], key: Callable[[str], str]
    ) -> Mapping[str, list[Model]]:
        if number not in self._indexes:
            index: dict[str, list[Model]] = defaultdict(list)
            for model in self.models:
                for form in dict.fromkeys(map(key, forms(model))):
                    index[form].append(model)
            self._indexes[number] = index
        return self._indexes[number]


def named(models: Sequence[Model], name: str) -> Model:
    """The model with this name, or whose table or file has it. Raises ArgumentError with the
    nearest, and where several have it.
    """
    naming = Naming(models)
    model = naming.one(name)
    if model is None:
        raise naming.unknown(name)
    return model


def _last(model: Model) -> Iterator[str]:
    last = model.name.rpartition("/")[2]
    yield from (last, f"{last}{model.path.suffix}")


#: in this order: what a name is first, it is not also something else
_WAYS: tuple[tuple[Callable[[Model], Iterable[str]], Callable[[str], str]], ...] = (
    (lambda model: (model.name,), str),
    (lambda model: (str(model.target), model.target.full), fold),
    (lambda model: (model.target.qualified,), fold),
    (paths_of, lambda text: text.removeprefix("./")),
    (_last, str),
)
