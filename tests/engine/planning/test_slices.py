"""Which slice each step makes: chains, kinds, moments, values that were asked for. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.planning.slices import Partition, RunRequest, resolve_slices
from penstock.errors import ArgumentError, Location, PartitionError
from penstock.model.definition.graph import chains
from penstock.model.definition.model import Model
from penstock.model.time.partition import PartitionSpec, bounds, validate
from penstock.model.values.asset import TableName

NIGHT = datetime(2026, 6, 1, 0, 30, tzinfo=UTC)  # the 31st of May in New York
NEW_YORK = "America/New_York"
DAILY, HOURLY, MONTHLY = (PartitionSpec(kind) for kind in ("daily", "hourly", "monthly"))
LOCAL = PartitionSpec("daily", tz=NEW_YORK)
TENANT, REGION = (PartitionSpec("dynamic", key=key) for key in ("$.tenant", "$.region"))


def model(name: str, spec: PartitionSpec | None, *reads: str) -> Model:
    def table(of: str) -> TableName:
        return TableName("main", "main", of)

    known: Any = SimpleNamespace(
        name=name,
        path=Path(f"{name}.sql"),
        target=table(name),
        partition=spec,
        history=None,
        inputs=tuple(map(table, reads)),
        python=None,
        files_read=(),
        files_written=(),
        place=lambda _: Location(Path(f"{name}.sql")),
    )
    return cast(Model, known)


def slices(
    *models: Model, partition: Partition | None = None, payload: Any = None, **args: str
) -> dict[str, str]:
    by_name = {model.name: model for model in models}
    together = [[by_name[name] for name in chain] for chain in chains(models)]
    request = RunRequest(partition=partition, fire_time=NIGHT, payload=payload, args=args)
    found = resolve_slices(together, request, above(models))
    return {name: made.value for name, made in found.items()}


def above(models: Sequence[Model]) -> Callable[[str], tuple[str, ...]]:
    """Return what each model reads, however far, by its name."""
    by_name = {model.name: model for model in models}

    def upstream(name: str) -> tuple[str, ...]:
        parents = [table.table for table in by_name[name].inputs if table.table in by_name]
        return tuple(dict.fromkeys(n for each in parents for n in (each, *upstream(each))))

    return upstream


def test_chains_are_what_partitioned_inputs_connect() -> None:
    models = [
        model("raw", DAILY),
        model("whole", None, "raw"),
        model("clean", DAILY, "raw", "whole"),
        model("apart", DAILY, "whole"),
        model("tenants", TENANT),
    ]
    assert chains(models) == (("raw", "clean"), ("apart",), ("tenants",))


def test_each_chain_is_resolved_by_itself() -> None:
    models = (
        model("utc", DAILY),
        model("local", LOCAL),
        model("hourly", HOURLY),
        model("monthly", MONTHLY),
        model("tenants", TENANT),
    )
    assert slices(*models, payload={"tenant": "acme"}) == {
        "utc": "2026-06-01",
        "local": "2026-05-31",
        "hourly": "2026-06-01T00",
        "monthly": "2026-06",
        "tenants": "acme",
    }


def test_the_top_of_a_chain_resolves_for_its_kind_and_the_moment_for_others() -> None:
    compact = PartitionSpec("daily", tz=NEW_YORK, format="%Y%m%d")
    chain = (model("raw", DAILY), model("clean", LOCAL, "raw"), model("mart", compact, "clean"))
    assert slices(*chain) == {"raw": "2026-06-01", "clean": "2026-06-01", "mart": "20260601"}
    month = model("month", MONTHLY, "clean")
    assert slices(*chain[:2], month)["month"] == "2026-06"


def test_a_value_goes_to_all_that_can_have_it() -> None:
    models = (model("utc", DAILY), model("local", LOCAL), model("month", MONTHLY, "utc"))
    assert slices(*models, partition="2026-05-31") == {
        "utc": "2026-05-31",
        "local": "2026-05-31",
        "month": "2026-05",  # of the day's chain: the month that holds it
    }


@pytest.mark.parametrize(
    ("models", "value", "names"),
    [
        ((model("a", DAILY), model("b", HOURLY)), "2026-05-16", ("daily", "hourly")),
        ((model("a", DAILY), model("b", HOURLY, "a")), "2026-05-16", ("daily", "hourly")),
        ((model("a", DAILY), model("b", MONTHLY)), "2026-05-16", ("daily", "monthly")),
        ((model("a", MONTHLY), model("b", DAILY, "a")), "2026-05", ("monthly", "daily")),
        ((model("a", DAILY), model("b", TENANT)), "2026-05-16", ("daily", 'key="$.tenant"')),
        ((model("a", TENANT), model("b", DAILY)), "acme", ('key="$.tenant"', "daily")),
        ((model("a", TENANT), model("b", REGION)), "acme", ("$.tenant", "$.region")),
    ],
)
def test_a_value_that_not_all_can_have_names_both_kinds_and_the_way_on(
    models: tuple[Model, Model], value: str, names: tuple[str, str]
) -> None:
    with pytest.raises(PartitionError) as caught:
        slices(*models, partition=value)
    message, _, rest = caught.value.message.partition(", not for ")
    assert f"partition {value} is for a " in message
    assert rest.startswith("b (")
    assert names[0] in message
    assert names[1] in rest
    assert "--select a with this partition, then --select b" in (caught.value.hint or "")
    assert str(caught.value.location) == "b.sql"


def test_a_value_is_carried_down_to_readers_with_another_key() -> None:
    chain = (model("a", TENANT), model("b", REGION, "a"), model("c", REGION, "b"))
    values = {"a": "acme", "b": "acme", "c": "acme"}
    assert slices(*chain, payload={"tenant": "acme", "region": "eu"}) == values
    assert slices(*chain, payload={"tenant": "acme"}) == values
    assert slices(*chain, partition="acme") == values
    alone = (model("b", REGION),)
    assert slices(*alone, payload={"tenant": "acme", "region": "eu"}) == {"b": "eu"}


def test_steps_with_different_keys_that_meet_are_refused() -> None:
    models = (model("a", TENANT), model("b", REGION), model("c", TENANT, "a", "b"))
    with pytest.raises(PartitionError, match=r"c reads a .*tenant.* and b .*region") as caught:
        slices(*models, payload={"tenant": "acme", "region": "eu"})
    assert str(caught.value.location) == "c.sql"
    assert "--select a, then --select b" in (caught.value.hint or "")


def test_a_value_by_time_leaves_dynamic_steps_to_the_payload() -> None:
    models = (model("a", DAILY), model("b", TENANT))
    values = {"a": "2026-05-16", "b": "acme"}
    assert slices(*models, partition="2026-05-16", payload={"tenant": "acme"}) == values
    assert slices(*models, partition="2026-05-16", tenant="acme") == values
    assert slices(model("b", TENANT), partition="eu", payload={"tenant": "acme"}) == {"b": "eu"}


def test_a_payload_that_is_missing_is_shown() -> None:
    nested = PartitionSpec("dynamic", key="$.customer.region")
    with pytest.raises(PartitionError) as caught:
        slices(model("a", DAILY), model("b", nested))
    assert """--payload '{"customer": {"region": "..."}}'""" in str(caught.value)
    assert str(caught.value.location) == "b.sql"


def test_a_day_that_a_zone_skips_is_placed() -> None:
    with pytest.raises(PartitionError, match="2011-12-30 never was") as caught:
        slices(model("a", PartitionSpec("daily", tz="Pacific/Apia")), partition=date(2011, 12, 30))
    assert str(caught.value.location) == "a.sql"


@pytest.mark.parametrize("spec", [DAILY, TENANT])
def test_an_empty_value_is_none(spec: PartitionSpec) -> None:
    with pytest.raises(PartitionError, match="the partition is empty"):
        slices(model("a", spec), partition="")


def test_a_value_that_nothing_can_have_is_said_as_its_kind_says_it() -> None:
    with pytest.raises(PartitionError, match="'16/05' is not a valid daily partition") as caught:
        slices(model("a", DAILY), model("b", MONTHLY), partition="16/05")
    assert "write it like 2026-05-16" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("spec", "asked", "value"),
    [
        (DAILY, date(2026, 5, 16), "2026-05-16"),
        (LOCAL, date(2026, 5, 16), "2026-05-16"),
        (MONTHLY, date(2026, 5, 16), "2026-05"),
        (PartitionSpec("weekly"), date(2026, 5, 16), "2026-W20"),
        (HOURLY, datetime(2026, 5, 16, 9, 30), "2026-05-16T09"),  # noqa: DTZ001 - wall time
        (LOCAL, datetime(2026, 5, 16, 0, 30), "2026-05-16"),  # noqa: DTZ001 - wall time
        (LOCAL, datetime(2026, 5, 16, 0, 30, tzinfo=UTC), "2026-05-15"),
    ],
)
def test_dates_and_datetimes_are_taken(spec: PartitionSpec, asked: Partition, value: str) -> None:
    assert slices(model("a", spec), partition=asked) == {"a": value}


@pytest.mark.parametrize(
    ("spec", "said"),
    [(HOURLY, "2026-05-16 is more than one hour"), (TENANT, r"\$\.tenant of the payload")],
)
def test_a_date_is_neither_an_hour_nor_a_tenant(spec: PartitionSpec, said: str) -> None:
    with pytest.raises(PartitionError, match=said):
        slices(model("a", spec), partition=date(2026, 5, 16))


zones = st.sampled_from([None, "Europe/Paris", NEW_YORK, "Australia/Lord_Howe"])
timed = st.builds(
    PartitionSpec, kind=st.sampled_from(["daily", "hourly", "weekly", "monthly"]), tz=zones
)
dynamic = st.sampled_from([TENANT, REGION])
moments = st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1)).map(  # noqa: DTZ001
    lambda moment: moment.replace(tzinfo=UTC)
)


specs = timed | dynamic | st.none()


@st.composite
def projects(draw: st.DrawFn, specs: Any = specs) -> list[Model]:
    """Up to six models in the order of their graph, each reading some of those before it."""
    models: list[Model] = []
    for number in range(draw(st.integers(1, 6))):
        reads = [model.name for model in models if draw(st.booleans())]
        models.append(model(f"m{number}", draw(specs), *reads))
    return models


def resolved(models: list[Model], request: RunRequest) -> dict[str, str]:
    by_name = {model.name: model for model in models}
    together = [[by_name[name] for name in chain] for chain in chains(models)]
    found = resolve_slices(together, request, above(models))
    return {name: made.value for name, made in found.items()}


PAYLOAD = {"tenant": "acme", "region": "eu"}


@given(projects(), moments)
def test_a_chain_is_resolved_as_if_it_ran_alone(models: list[Model], moment: datetime) -> None:
    request = RunRequest(fire_time=moment, payload=PAYLOAD)
    with suppress(PartitionError):  # an hour that the clocks of one zone skip
        whole = resolved(models, request)
        assert whole.keys() == {model.name for model in models if model.partition}
        for chain in chains(models):
            alone = resolved([model for model in models if model.name in chain], request)
            assert alone == {name: whole[name] for name in chain}


@given(projects(timed), moments)
def test_one_kind_has_one_value_in_a_chain_and_other_kinds_hold_the_moment(
    models: list[Model], moment: datetime
) -> None:
    by_name = {model.name: model for model in models}
    with suppress(PartitionError):
        values = resolved(models, RunRequest(fire_time=moment))
        for chain in chains(models):
            tops: dict[str, str] = {}
            for name in chain:
                spec = cast(PartitionSpec, by_name[name].partition)
                if spec.kind not in tops:
                    start, end = bounds(spec, values[name])
                    assert start.astimezone(UTC) <= moment < end.astimezone(UTC)
                assert tops.setdefault(spec.kind, values[name]) == values[name]


@given(projects(), timed, moments)
def test_a_value_that_is_taken_is_each_steps_own_or_lies_in_its_slice(
    models: list[Model], asked: PartitionSpec, moment: datetime
) -> None:
    (value,) = resolved([model("a", asked)], RunRequest(fire_time=moment)).values()
    request = RunRequest(partition=value, payload=PAYLOAD)
    by_name = {model.name: cast(PartitionSpec, model.partition) for model in models}
    with suppress(PartitionError):
        for name, found in resolved(models, request).items():
            spec = by_name[name]
            if spec.kind == "dynamic":
                assert found in (value, *PAYLOAD.values())
            elif found != value:
                validate(spec, found)
                start, end = (bound.astimezone(UTC) for bound in bounds(spec, found))
                inner = [by for by in by_name.values() if by and by.kind == asked.kind]
                assert any(
                    start <= bounds(by, value)[0].astimezone(UTC)
                    and bounds(by, value)[1].astimezone(UTC) <= end
                    for by in inner
                )


@given(projects(), moments, st.sampled_from([timedelta(), timedelta(hours=5)]))
def test_what_was_asked_for_is_never_left_unsaid(
    models: list[Model], moment: datetime, later: timedelta
) -> None:
    """Either every partitioned step has a slice, or there is an error."""
    for partition in ((moment + later).date(), moment + later, "2026-05-16", "acme", ""):
        request = RunRequest(partition=partition, fire_time=moment)
        with suppress(PartitionError):
            slices = resolved(models, request)
            assert slices.keys() == {model.name for model in models if model.partition}


def test_payload_and_args_fill_arguments_alike(tmp_path: Path) -> None:
    from penstock.project.project import Project
    from tests.engine.toy import write_project

    script = (
        '-- pipeline\n-- partitioned dynamic key="$.tenant"\n-- materialize ducklake://main/t\n'
        "-- $n (int) = 2\n-- $note (text) = 'x'\nSELECT '{partition}' AS t, $n AS n, $note AS note"
    )
    project = Project.load(write_project(tmp_path / "p", {"models/t": script}))

    def bound(**request: Any) -> tuple[str | None, dict[str, object]]:
        (step,) = project.plan(**request).steps
        return step.slice, {**step.bindings.arguments}

    filled = ("acme", {"n": 7, "note": None, "partition": "acme"})
    assert bound(payload={"tenant": "acme", "n": 7, "note": None, "else": []}) == filled
    assert bound(args={"tenant": "acme", "n": 7, "note": None}) == filled
    assert bound(payload={"tenant": "acme", "n": 8, "note": None}, args={"n": "7"}) == filled
    assert bound(payload={"tenant": "acme", "partition": "no"})[1]["partition"] == "acme"
    with pytest.raises(ArgumentError, match=r"n \(int\) is a list in the payload"):
        bound(payload={"tenant": "acme", "n": [7]})
    with pytest.raises(ArgumentError, match="has no time zone"):
        project.plan(fire_time=datetime(2026, 1, 1))  # noqa: DTZ001 - what is refused
