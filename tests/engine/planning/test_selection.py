"""What selections select: a small project by a table of cases, and laws on random graphs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.planning.selection import Selected, Selection, States
from penstock.errors import ArgumentError
from penstock.model.definition.graph import Graph
from penstock.model.definition.model import Model
from penstock.model.script.declaration import About
from penstock.model.values.asset import TableName
from penstock.model.values.strategy import EMBEDDED, MERGE, VIEW, Strategy
from tests.model.definition.test_graph import model

BASE = model("x")


def placed(
    name: str, *tags: str, table: str = "", strategy: Strategy = BASE.strategy, owner: str = ""
) -> Model:
    schema, _, last = (table or f"main.{name.rpartition('/')[2]}").rpartition(".")
    return replace(
        BASE,
        name=name,
        path=Path(f"/srv/shop/models/{name}.sql"),
        target=TableName("main", schema, last),
        tags=tags,
        strategy=strategy,
        about=About(owner=owner or None),
    )


MODELS = {
    each.name: each
    for each in (
        placed("raw/flights", "hourly", table="main.flights_raw", owner="ops"),
        placed("raw/airports", "nightly", owner="ops"),
        placed("clean/flights", "nightly", "core"),
        placed("clean/eu/airports", "a tag", table="eu.airports", strategy=MERGE),
        placed("marts/delays_daily", "nightly", strategy=VIEW),
        placed("marts/delays_monthly", "Monthly"),
        placed("marts/ranking", strategy=VIEW),
        placed("shared", strategy=EMBEDDED),
        placed("a b+c", table="main.odd"),
        placed("v1.2", table="main.v"),
    )
}
PARENTS = {
    "raw/flights": (),
    "raw/airports": (),
    "clean/flights": ("raw/flights",),
    "clean/eu/airports": ("raw/airports",),
    "shared": ("clean/flights",),
    "marts/delays_daily": ("clean/flights", "clean/eu/airports"),
    "marts/delays_monthly": ("marts/delays_daily",),
    "marts/ranking": ("shared",),
    "a b+c": ("v1.2",),
    "v1.2": (),
}
GRAPH = Graph(PARENTS)
IN_STATE = {
    "failed": ["raw/airports"],
    "missing": ["marts/delays_daily", "marts/ranking"],
    "behind": ["raw/airports", "clean/flights"],
}


def in_state(word: str) -> Collection[str]:
    return IN_STATE.get(word, ())


def names(
    select: Iterable[str] = (), exclude: Iterable[str] = (), to: Iterable[str] = ()
) -> set[str]:
    selection = Selection(tuple(select), tuple(exclude), tuple(to))
    return set(selection.of(MODELS, GRAPH, in_state).names)


RAW = {"raw/flights", "raw/airports"}
CLEAN = {"clean/flights", "clean/eu/airports"}
DAILY, MONTHLY, RANKING = "marts/delays_daily", "marts/delays_monthly", "marts/ranking"
MARTS = {DAILY, MONTHLY, RANKING}
FLIGHTS = {"raw/flights", "clean/flights", "shared"}
ODD = {"a b+c", "v1.2"}
EVERY = set(MODELS)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        # names, tables and files
        ("raw/flights", {"raw/flights"}),
        ("main.flights_raw", {"raw/flights"}),
        ("main.main.flights_raw", {"raw/flights"}),
        ("EU.airports", {"clean/eu/airports"}),
        ("models/raw/flights.sql", {"raw/flights"}),
        ("raw/flights.sql", {"raw/flights"}),
        ("ranking", {RANKING}),
        # whole names with signs of the language
        ("a b+c", {"a b+c"}),
        ("models/a b+c.sql", {"a b+c"}),
        ("v1.2", {"v1.2"}),
        ("v1.2+", ODD),
        ("+a?b?c", ODD),
        # patterns
        ("raw/*", RAW),
        ("clean/*", {"clean/flights"}),
        ("clean/**", CLEAN),
        ("**/flights", {"raw/flights", "clean/flights"}),
        ("**/airports", {"raw/airports", "clean/eu/airports"}),
        ("*/*/airports", {"clean/eu/airports"}),
        ("*", EVERY),
        ("**", EVERY),
        ("*/*", RAW | MARTS | {"clean/flights"}),
        ("delays_*", {DAILY, MONTHLY}),
        ("marts/delays_?aily", {DAILY}),
        ("marts/delays_[dm]*", {DAILY, MONTHLY}),
        ("marts/delays_[!d]*", {MONTHLY}),
        ("models/raw/*.sql", RAW),
        ("/srv/shop/models/raw/*", RAW),
        ("eu.*", {"clean/eu/airports"}),
        ("main.flights*", {"raw/flights", "clean/flights"}),
        ("MAIN.Flights_*", {"raw/flights"}),
        ("main.eu.*", {"clean/eu/airports"}),
        # folders
        ("raw/", RAW),
        ("clean/", CLEAN),
        ("clean/eu/", {"clean/eu/airports"}),
        ("models/marts/", MARTS),
        ("./models/marts/", MARTS),
        # properties
        ("tag:nightly", {"raw/airports", "clean/flights", DAILY}),
        ("tag:NIGHTLY", {"raw/airports", "clean/flights", DAILY}),
        ("tag:*ly", {"raw/airports", "raw/flights", "clean/flights", DAILY, MONTHLY}),
        ("tag:a?tag", {"clean/eu/airports"}),
        ("owner:ops", RAW),
        ("strategy:view", {DAILY, RANKING}),
        ("strategy:m*", {"clean/eu/airports"}),
        # hops
        ("+clean/flights", {"raw/flights", "clean/flights"}),
        ("clean/flights+", {"clean/flights", "shared", *MARTS}),
        ("+clean/flights+", {"raw/flights", "clean/flights", "shared", *MARTS}),
        (f"1+{DAILY}", {DAILY, *CLEAN}),
        (f"2+{DAILY}", {DAILY, *CLEAN, *RAW}),
        ("raw/flights+1", {"raw/flights", "clean/flights"}),
        ("raw/flights+2", {*FLIGHTS, DAILY}),
        ("1+clean/flights+1", {*FLIGHTS, DAILY}),
        ("0+clean/flights+0", {"clean/flights"}),
        ("99+clean/flights", {"raw/flights", "clean/flights"}),
        ("raw/*+1", RAW | CLEAN),
        ("+tag:core", {"raw/flights", "clean/flights"}),
        ("@clean/flights", EVERY - ODD),
        ("@shared", {*FLIGHTS, RANKING}),
        ("@clean/eu/", {*RAW, *CLEAN, DAILY, MONTHLY}),
        # sets
        ("raw/flights ranking", {"raw/flights", RANKING}),
        ("raw/flights|ranking", {"raw/flights", RANKING}),
        ("+marts/ranking,+marts/delays_daily", {"raw/flights", "clean/flights"}),
        ("tag:nightly,raw/", {"raw/airports"}),
        ("tag:nightly & ^raw/", {"clean/flights", DAILY}),
        ("(raw/ marts/),tag:nightly", {"raw/airports", DAILY}),
        ("^marts/", EVERY - MARTS),
        ("^(@clean/flights)", ODD),
        # states
        ("state:failed", {"raw/airports"}),
        ("state:failed+1", {"raw/airports", "clean/eu/airports"}),
        ("state:behind,tag:core", {"clean/flights"}),
        ("+state:missing,raw/", RAW),
        ("state:failed state:missing", {"raw/airports", DAILY, RANKING}),
        ("state:changed", set()),
        ("state:changed+", set()),
        ("state:failed,state:missing", set()),
        ("state:failed,marts/", set()),
    ],
)
def test_selects(text: str, selected: set[str]) -> None:
    assert names([text]) == selected
    assert names(exclude=[text]) == EVERY - selected if selected != EVERY else True


@pytest.mark.parametrize(
    ("options", "selected"),
    [
        ({}, EVERY),
        ({"select": ["raw/flights", "marts/"]}, {"raw/flights", *MARTS}),
        ({"select": ["marts"]}, MARTS),
        ({"select": ["models/marts"]}, MARTS),
        ({"select": ["clean/eu"]}, {"clean/eu/airports"}),
        ({"select": ["+marts", "raw"], "exclude": ["clean"]}, MARTS | RAW | (EVERY & {"shared"})),
        ({"exclude": ["raw/", "shared"]}, EVERY - RAW - {"shared"}),
        ({"select": ["raw/*+"], "exclude": ["marts/*", "shared"]}, RAW | CLEAN),
        ({"select": ["raw/flights"], "exclude": ["marts/"]}, {"raw/flights"}),
        ({"to": [DAILY]}, {DAILY, *CLEAN, *RAW}),
        ({"to": ["ranking"]}, {*FLIGHTS, RANKING}),
        ({"to": ["ranking", "clean/eu/airports"]}, {*FLIGHTS, *RAW, RANKING, "clean/eu/airports"}),
        ({"to": ["tag:core"]}, {"raw/flights", "clean/flights"}),
        ({"to": [DAILY], "exclude": ["raw/"]}, {DAILY, *CLEAN}),
        ({"select": ["raw/flights+"], "to": [DAILY]}, {"raw/flights", "clean/flights", DAILY}),
        ({"select": ["state:failed+"], "to": [MONTHLY]}, EVERY & {
            "raw/airports", "clean/eu/airports", DAILY, MONTHLY
        }),
        ({"select": ["state:failed"], "to": [RANKING]}, set()),
        ({"select": ["state:failed"], "exclude": ["raw/"]}, set()),
        ({"exclude": ["state:failed"]}, EVERY - {"raw/airports"}),
        ({"select": ["marts/"], "exclude": ["state:failed"]}, MARTS),
        ({"exclude": ["tag:nightly,tag:hourly", "ranking"]}, EVERY - {RANKING}),
    ],
)  # fmt: skip
def test_options_together(options: dict[str, list[str]], selected: set[str]) -> None:
    assert names(**options) == selected


@pytest.mark.parametrize(
    ("options", "said", "hint"),
    [
        ({"select": ["raw/flihgts"]}, "--select raw/flihgts: model 'raw/flihgts' does not exist",
         "did you mean 'raw/flights'?"),
        ({"select": ["+rnking"]}, "--select +rnking: model 'rnking' does not exist",
         "did you mean"),
        ({"select": ["mars"]}, "model 'mars' does not exist", "models are"),
        ({"select": ["flights"]}, "'flights' is short for several models: raw/flights, clean/fl",
         "name one of them"),
        ({"select": ["mart/"]}, "no model is in the folder 'mart/'", "did you mean 'marts/'?"),
        ({"select": ["raw/z*"]}, "no model matches 'raw/z*'", "models are"),
        ({"select": ["raw/[z-a]*"]}, "'raw/[z-a]*' is not a pattern", ""),
        ({"select": ["tag:nigthly"]}, "no model has the tag 'nigthly'", "did you mean 'nightly'?"),
        ({"select": ["tag:zz"]}, "no model has the tag 'zz'", "tags are Monthly, a tag, core"),
        ({"select": ["owner:me"]}, "no model has the owner 'me'", "owners are ops"),
        ({"select": ["strategy:vew"]}, "no model has the strategy 'vew'", "did you mean 'view'?"),
        ({"select": ["raw/,marts/"]}, "--select raw/,marts/: no model is in all of these",
         "a comma selects what is on both sides of it; a space, what is on either"),
        ({"select": ["^*"]}, "--select ^*: no model is in all of these", ""),
        ({"select": ["raw/", " "]}, "--select: an empty text selects nothing", "for example"),
        ({"select": ["1+"]}, "--select 1+: model '1' does not exist", ""),
        ({"exclude": ["tag:slwo"]}, "--exclude tag:slwo: no model has the tag 'slwo'", "tags are"),
        ({"exclude": ["*"]}, "--exclude leaves nothing of what is selected", ""),
        ({"select": ["raw/"], "exclude": ["raw/*"]}, "--exclude leaves nothing", ""),
        ({"to": ["tomorow"]}, "--to tomorow: model 'tomorow' does not exist",
         "the end of a range is a date or another moment, such as 2026-01-31"),
        ({"select": ["marts/"], "to": ["raw/flights"]},
         "--to raw/flights: nothing that is selected is needed for that", ""),
    ],
)  # fmt: skip
def test_what_selects_nothing_is_refused(
    options: dict[str, list[str]], said: str, hint: str
) -> None:
    with pytest.raises(ArgumentError) as raised:
        names(**options)
    assert said in raised.value.message
    assert hint in (raised.value.hint or "")


def test_states_are_asked_for_only_where_they_are_named() -> None:
    def never(word: str) -> Collection[str]:
        raise AssertionError(word)

    Selection(("raw/*+", "tag:nightly"), ("marts/",), ("shared",)).of(MODELS, GRAPH, never)


def test_why_nothing_is_selected() -> None:
    found = Selection(("state:changed",), ("raw/",), (DAILY,)).of(MODELS, GRAPH, in_state)
    assert found == Selected(
        frozenset(),
        frozenset(RAW),
        f"nothing to do: state:changed --to {DAILY} --exclude raw/ selects no model",
    )
    assert Selection(("state:failed",)).of(MODELS, GRAPH, in_state).idle is None


def test_the_one_model_of_a_selection() -> None:
    every = MODELS.values()
    (flights,) = (each for each in every if each.name == "raw/flights")
    assert Selection(("raw/flights",)).only(every) is flights
    assert Selection(("main.flights_raw",)).only(every) is flights
    assert Selection(("raw/flight?",)).only(every) is None
    assert Selection(("raw/flights", "ranking")).only(every) is None
    assert Selection(("raw/flights",), to=("ranking",)).only(every) is None
    assert Selection().only(every) is None


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, Model], Graph]:
    """Up to eight models, each of which reads some of those before it."""
    names_ = [f"m{at}" for at in range(draw(st.integers(2, 8)))]
    parents = {
        name: tuple(draw(st.sets(st.sampled_from(names_[:at])))) if at else ()
        for at, name in enumerate(names_)
    }
    tags = st.sets(st.sampled_from(["red", "blue"]))
    models = {name: placed(name, "all", *draw(tags)) for name in names_}
    return models, Graph(parents)


TEXTS = st.recursive(
    st.sampled_from(["m0", "m1", "m?", "[m]0", "tag:all", "state:failed"]),
    lambda inner: st.one_of(
        st.builds("({})".format, inner),
        st.builds("({}) ({})".format, inner, inner),
        st.builds("({}),({})".format, inner, inner),
        st.builds(
            "{}+({})+{}".format, st.sampled_from(["", 0, 1]), inner, st.sampled_from(["", 2])
        ),
        st.builds("@({})".format, inner),
        st.builds("^({})".format, inner),
    ),
    max_leaves=4,
)
SOME: States = lambda _: ("m1",)  # noqa: E731 - a value


def chosen(
    project: tuple[dict[str, Model], Graph],
    select: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    to: tuple[str, ...] = (),
) -> frozenset[str]:
    """The selected names; nothing where that is refused."""
    try:
        return Selection(select, exclude, to).of(*project, SOME).names
    except ArgumentError:
        return frozenset()


@given(graphs(), TEXTS, TEXTS)
def test_laws_of_sets(project: tuple[dict[str, Model], Graph], a: str, b: str) -> None:
    every = frozenset(project[0])
    first, second = chosen(project, (f"({a})",)), chosen(project, (f"({b})",))
    if first and second:  # what selects nothing is refused, also beside another
        assert chosen(project, (a, b)) == first | second == chosen(project, (f"({a}) ({b})",))
        assert chosen(project, (a,), (b,)) == first - second
        assert chosen(project, exclude=(a, b)) == every - (first | second)
        assert chosen(project, (b, a)) == chosen(project, (a, b))
    assert chosen(project, (f"({a}),({b})",)) <= first
    assert chosen(project, (f"({a}),({a})",)) == first
    assert chosen(project, (f"^({a})",)) == every - first
    assert chosen(project, (f"({a}),^({b})",)) == chosen(project, (f"^(^({a}) ({b}))",))


@given(graphs(), TEXTS)
def test_laws_of_hops(project: tuple[dict[str, Model], Graph], a: str) -> None:
    models, graph = project
    names_ = chosen(project, (a,))
    above = {other for name in names_ for other in graph.upstream(name)}
    below = {other for name in names_ for other in graph.downstream(name)}
    assert chosen(project, (f"+({a})",)) == names_ | above
    assert chosen(project, (f"({a})+",)) == names_ | below
    assert chosen(project, (f"+({a})+",)) == names_ | above | below
    assert chosen(project, (f"@({a})",)) == chosen(project, (f"+(({a})+)",))
    assert chosen(project, (f"0+({a})+0",)) == names_
    assert chosen(project, (f"1+(1+({a}))",)) == chosen(project, (f"2+({a})",))
    assert chosen(project, (f"{len(models)}+({a})",)) == names_ | above
    assert chosen(project, to=(a,)) == names_ | above
