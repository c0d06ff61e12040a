"""Find models by what they may be called: their names, tables and files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from penstock.errors import ArgumentError
from penstock.model.definition.model import Model
from penstock.sql.identifiers import fold, listed, nearest


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
