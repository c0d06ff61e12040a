"""Derive what is asked of models when it is asked for, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from penstock.model.definition.model import Model

V = TypeVar("V")


class ByModel(Mapping[str, V]):
    """Values by the names of models. A plan of one model derives those of few others.

    Whoever iterates over it, or asks for its length, has all of them derived.
    """

    def __init__(
        self, models: Sequence[Model], derive: Callable[[Sequence[Model]], Mapping[str, V]]
    ) -> None:
        """Derive nothing yet.

        Args:
            models: The models of the project.
            derive: Returns the values of some of them; models without a value are left out.
        """
        self._models = {model.name: model for model in models}
        self._derive = derive
        self._values: dict[str, V | None] = {}

    def __getitem__(self, name: str) -> V:
        """Return the value of a model, which is derived if it was not asked for before."""
        value = self._value(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        """Return the names of all models with a value."""
        missing = [model for name, model in self._models.items() if name not in self._values]
        if missing:
            self._add(missing)
        return (name for name in self._models if self._values[name] is not None)

    def __len__(self) -> int:
        """Return how many models have a value."""
        return sum(1 for _ in self)

    @property
    def derived(self) -> frozenset[str]:
        """The names of the models whose values were asked for."""
        return frozenset(self._values)

    def _value(self, name: str) -> V | None:
        if name not in self._values:
            if name not in self._models:
                return None
            self._add([self._models[name]])
        return self._values[name]

    def _add(self, models: Sequence[Model]) -> None:
        values = self._derive(models)
        self._values |= {model.name: values.get(model.name) for model in models}
