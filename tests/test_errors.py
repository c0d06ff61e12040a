"""The tree of errors is as its module draws it; a message has its place and the next step."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from penstock import errors
from penstock.errors import Location, PenstockError


def drawn() -> Iterator[tuple[str, str]]:
    """The names in the docstring, each with the one that it stands below."""
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"(    [│├└─ ]*)([A-Z]\w+)( .*)?$", line)
        if found is None:
            continue
        depth = len(found[1])
        above = [each for each in above if each[0] < depth]
        if above:
            yield found[2], above[-1][1]
        above.append((depth, found[2]))


def classes(root: type[PenstockError] = PenstockError) -> Iterator[type[PenstockError]]:
    for each in root.__subclasses__():
        if each.__module__ == errors.__name__:
            yield each
            yield from classes(each)


def test_the_tree_is_drawn_as_it_is() -> None:
    assert {name for name, _ in drawn()} == {each.__name__ for each in classes()}
    for name, above in drawn():
        assert issubclass(getattr(errors, name), getattr(errors, above)), name


@pytest.mark.parametrize(
    ("location", "said"),
    [
        (Location("a.sql"), "a.sql"),
        (Location("a.sql", 3), "a.sql:3"),
        (Location("a.sql", 3, 7, "@twice, macros/m.py:2"), "a.sql:3:7 (in @twice, macros/m.py:2)"),
    ],
)
def test_a_message_has_its_place_and_the_next_step(location: Location, said: str) -> None:
    assert str(PenstockError("no", location=location)) == f"{said}: no"
    assert str(PenstockError("no", hint="yes", location=location)) == f"{said}: no\n  → yes"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ArgumentError("no"), 2),
        (errors.PlanMoved("no"), 4),
        (errors.QueryFailed("no"), 1),
        (errors.CatalogLocked("no"), 1),
    ],
)
def test_exit_codes(error: PenstockError, code: int) -> None:
    assert error.exit_code == code


def test_a_notebook_shows_the_message_unless_all_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = PenstockError("no", hint="yes")
    assert error._render_traceback_() == ["PenstockError: no", "  → yes"]
    monkeypatch.setattr(PenstockError, "full_traceback", True)
    assert error._render_traceback_() == ["penstock.errors.PenstockError: no", "  → yes"]
