"""Select the models of a request: what ``select``, ``exclude`` and ``to`` name of a graph. Pure.

Without any of them all models are selected. ``to`` narrows what is selected to models and what they
need, ``exclude`` takes models away. The language is read by `penstock.engine.planning.selectors`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError
from penstock.model.definition.graph import Graph, Naming, names_of, paths_of
from penstock.model.definition.model import Model
from penstock.sql.identifiers import fold, listed, nearest

if TYPE_CHECKING:
    from penstock.engine.planning.selectors import Selector

Names = frozenset[str]
_END = "the end of a range is a date or another moment, such as 2026-01-31"
_COMMA = "a comma selects what is on both sides of it; a space, what is on either"
#: the models that have a slice in a state, by the word of ``state:``
States = Callable[[str], Collection[str]]


@dataclass(frozen=True, slots=True)
class Selected:
    """The ``names`` of the selected models. ``excluded`` are those that nothing may add again.

    ``idle`` says why there are none, where the states of slices decided that.
    """

    names: Names
    excluded: Names = frozenset()
    idle: str | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The models that a request names: texts of the selection language."""

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    to: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there are any: without them, all models are meant."""
        return bool(self.select or self.exclude or self.to)

    def only(self, models: Iterable[Model]) -> Model | None:
        """Return the one model whose name this is, and None for all other selections."""
        if len(self.select) != 1 or self.exclude or self.to:
            return None
        return Naming(models).one(self.select[0])

    def of(
        self, models: Mapping[str, Model], graph: Graph, states: States = lambda _: ()
    ) -> Selected:
        """Return the models that are selected. Raises ArgumentError for a text that selects none,
        unless the states of slices decide that.
        """
        if not self.exclude and not self.to and all(text in models for text in self.select):
            return Selected(frozenset(self.select or models))
        resolver = _Resolver(tuple(models.values()), graph, states)
        names = resolver.every
        if self.select:
            names = resolver.union("--select", self.select)
        if self.to:
            within = resolver.reached(resolver.union("--to", self.to), graph.parents)
            if not names & within and not resolver.in_states:
                wanted = " ".join(self.to)
                raise ArgumentError(f"--to {wanted}: nothing that is selected is needed for that")
            names &= within
        excluded = resolver.union("--exclude", self.exclude, may_be_empty=True)
        if not names - excluded and not resolver.in_states:
            raise ArgumentError("--exclude leaves nothing of what is selected")
        idle = None if names - excluded else self._idle()
        return Selected(names - excluded, excluded, idle)

    def _idle(self) -> str:
        options = (("", self.select), ("--to ", self.to), ("--exclude ", self.exclude))
        said = " ".join(f"{option}{text}" for option, texts in options for text in texts)
        return f"nothing to do: {said} selects no model"


@dataclass
class _Resolver:
    """The models of a project, and what selectors stand for among them."""

    models: Sequence[Model]
    graph: Graph
    states: States
    in_states: dict[str, Names] = field(default_factory=dict)

    @cached_property
    def every(self) -> Names:
        return frozenset(model.name for model in self.models)

    @cached_property
    def naming(self) -> Naming:
        return Naming(self.models)

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        return self.graph.children()

    def union(self, option: str, texts: Iterable[str], *, may_be_empty: bool = False) -> Names:
        """Return what any of the texts of an option selects."""
        found: set[str] = set()
        for text in texts:
            with _said_of(option, text):
                model = self.naming.one(text)  # whatever signs the name has
                selector = None if model is not None else _parsed(text)
            if model is not None:
                found.add(model.name)
            if selector is None:
                continue
            words = self.ask(selector)
            with _said_of(option, text):
                names = self.of(selector)
                if not names and not may_be_empty and not words:
                    raise ArgumentError("no model is in all of these", hint=_COMMA)
            found |= names
        return frozenset(found)

    def ask(self, selector: Selector) -> Names:
        """Return the words of ``state:`` in a selector, when it is known which models they mean."""
        from penstock.engine.planning.selectors import states_in

        words = states_in(selector)
        for word in words - self.in_states.keys():
            self.in_states[word] = frozenset(self.states(word))
        return words

    def of(self, selector: Selector) -> Names:
        from penstock.engine.planning import selectors as language

        match selector:
            case language.Word(text):
                names = self._called(text)
            case language.Property(name, value):
                names = self._with(name, value)
            case language.Union(of):
                names = frozenset().union(*map(self.of, of))
            case language.Intersection(of):
                names = self.every.intersection(*map(self.of, of))
            case language.Complement(inner):
                names = self.every - self.of(inner)
            case language.Hops(inner, up, down):
                start = self.of(inner)
                above = self.reached(start, self.graph.parents, up)
                names = above | self.reached(start, self.children, down)
            case language.Around(inner):
                below = self.reached(self.of(inner), self.children)
                names = self.reached(below, self.graph.parents)
        return names

    def reached(
        self, names: Names, edges: Mapping[str, Iterable[str]], hops: int | None = None
    ) -> Names:
        """Return the models, and those that so many edges lead to; without a number, any."""
        reached, level = set(names), set(names)
        while level and hops != 0:
            level = {other for name in level for other in edges[name]} - reached
            reached |= level
            hops = None if hops is None else hops - 1
        return frozenset(reached)

    def _called(self, text: str) -> Names:
        model = self.naming.one(text)
        if model is not None:
            return frozenset({model.name})
        folder = text if text.endswith("/") else None
        if folder is None and not _is_pattern(text):
            found = self._matching(f"{text}/**")
            if not found:
                raise self.naming.unknown(text)
            return found
        found = self._matching(text if folder is None else f"{folder}**")
        if found:
            return found
        if folder is None:
            raise ArgumentError(
                f"no model matches {text!r}", hint=_near(text, self.every, "models")
            )
        folders = {f"{name.rpartition('/')[0]}/" for name in self.every if "/" in name}
        raise ArgumentError(
            f"no model is in the folder {folder!r}", hint=_near(folder, folders, "folders")
        )

    def _matching(self, pattern: str) -> Names:
        return frozenset(model.name for model in self.models if _matches(pattern, model))

    def _with(self, name: str, value: str) -> Names:
        """Return the models that have a value of a property, or one that a pattern matches."""
        if name == "state":
            return self.in_states[value]
        values = _PROPERTIES[name]
        pattern = _compiled(fold(value), "\0")
        found = frozenset(
            model.name
            for model in self.models
            if any(pattern.fullmatch(fold(own)) for own in values(model))
        )
        if not found:
            known = {own for model in self.models for own in values(model)}
            raise ArgumentError(
                f"no model has the {name} {value!r}", hint=_near(value, known, f"{name}s")
            )
        return found


def _parsed(text: str) -> Selector:
    # Late: most requests name models, or none.
    from penstock.engine.planning.selectors import parse

    return parse(text)


@contextmanager
def _said_of(option: str, text: str) -> Iterator[None]:
    """Name an option and its text in what is wrong with them."""
    try:
        yield
    except ArgumentError as error:
        said = f"{option} {text}" if text.strip() else option
        hint = "; ".join(filter(None, (error.hint, _END if option == "--to" else None)))
        raise ArgumentError(f"{said}: {error.message}", hint=hint or None) from None


def _owner(model: Model) -> Iterable[str]:
    return () if model.about.owner is None else (model.about.owner,)


_PROPERTIES: Mapping[str, Callable[[Model], Iterable[str]]] = {
    "tag": lambda model: model.tags,
    "owner": _owner,
    "strategy": lambda model: (model.strategy.name,),
}


def _near(text: str, known: Collection[str], what: str) -> str:
    near = nearest(text, sorted(known))
    others = f"{what} are {listed(sorted(known))}" if known else f"there are no {what}"
    return f"did you mean {near!r}?" if near else others


def _is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def _matches(pattern: str, model: Model) -> bool:
    """Return whether a pattern matches the name of a model, its file, or that of its table.

    ``*`` and ``?`` stay within a folder, or a part of the table's name. A pattern without a folder
    is matched with the last part of names.
    """
    pattern = pattern.removeprefix("./")
    paths = _compiled(pattern, "/")
    if "/" in pattern:
        first = f"{pattern.partition('/')[0]}/"
        below, above = tuple(paths_of(model))[:2], tuple(paths_of(model))[2:]
        known = (*below, *(path for path in above if path.startswith(first)))
        return any(map(paths.fullmatch, known))
    if paths.fullmatch(model.name.rpartition("/")[2]):
        return True
    tables = _compiled(fold(pattern), ".")
    return "." in pattern and any(tables.fullmatch(fold(name)) for name in names_of(model)[1:])


_SIGNS = re.compile(r"(\*\*/)|(\*\*)|(\*)|(\?)|\[(!?)([^\]]+)\]")


@lru_cache(maxsize=64)
def _compiled(pattern: str, separator: str) -> re.Pattern[str]:
    """Return a pattern as a regular expression; ``**`` alone crosses the separator."""
    inside, found, end = f"[^{re.escape(separator)}]", "", 0
    for sign in _SIGNS.finditer(pattern):
        found += re.escape(pattern[end : sign.start()])
        folders, deep, shallow, _, negated, letters = sign.groups()
        if letters is not None:
            escaped = letters.replace("\\", "\\\\").replace("^", "\\^").replace("[", "\\[")
            found += f"[{'^' if negated else ''}{escaped}]"
        else:
            found += (
                "(?:.*/)?" if folders else ".*" if deep else f"{inside}*" if shallow else inside
            )
        end = sign.end()
    try:
        return re.compile(found + re.escape(pattern[end:]), re.DOTALL)
    except re.error as error:
        raise ArgumentError(f"{pattern!r} is not a pattern: {error.msg}") from None
