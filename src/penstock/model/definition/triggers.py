"""Say when a model is due, and check what triggers it.

A trigger that `penstock serve` would never notice is a warning, and so is one that cannot do what
it says. A cron expression or a time zone that cannot be read is an error. Inputs that lead back to
their model are found with the other circles of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from penstock.errors import Diagnostic, PartitionError
from penstock.model.definition.graph import makers_by_table, table_key
from penstock.model.definition.model import Model
from penstock.model.script.declaration import Declaration
from penstock.model.time.cron import SHORTCUTS, Cron
from penstock.model.time.partition import TIME_KINDS, PartitionSpec, check_spec
from penstock.model.values.asset import table_of
from penstock.model.values.schedule import NAME_OPTIONS, OPTIONS, Trigger
from penstock.settings.quantities import seconds_of

_CRON_HINT = f'write five fields, as in cron="0 6 * * *", or one of {", ".join(SHORTCUTS)}'
_AWAY = "take it away"


def cron_of(declaration: Declaration) -> Cron | None:
    """Return the schedule by which a model is due.

    Args:
        declaration: A model, with the defaults of its project.

    Returns:
        That of ``on schedule``. That of ``MODEL (...)``, which is ``@daily`` if it names none; None
        of kinds that a run makes nothing of, and of seeds, which change with the project.
    """
    if declaration.by_block:
        if not declaration.strategy.runs or declaration.generated:
            return None
        cadence = declaration.cadence
        return Cron(cadence.cron or "@daily", cadence.cron_tz or "UTC")
    crons = (
        Cron(trigger.cron, trigger.tz or "UTC")
        for trigger in declaration.schedule.triggers
        if trigger.cron is not None
    )
    return next(crons, None)


def why_never_due(declaration: Declaration) -> str:
    """Return why `cron_of` has nothing for a ``MODEL (...)``.

    Args:
        declaration: The model.

    Returns:
        The end of a sentence.
    """
    if declaration.generated:
        return "a seed changes with its file"
    return "the models that read it evaluate its query"


def joins_by_partition(trigger: Trigger, model: Model, maker: Model | None) -> bool:
    """Return whether ``trigger all`` waits for an input, partition by partition.

    Args:
        trigger: The input.
        model: The model that it triggers.
        maker: The model that makes the input, if one of the project does.

    Returns:
        True for a path with ``{partition}``, and for the table of a partitioned model if the model
        itself is partitioned.
    """
    if trigger.bears_partition:
        return True
    return model.partition is not None and maker is not None and maker.partition is not None


def maker_of(trigger: Trigger, makers: Mapping[str, Model]) -> Model | None:
    """Return the model that makes the table of a trigger.

    Args:
        trigger: The trigger.
        makers: Those of the project, by their tables.

    Returns:
        The model; None if none of the project makes it, or the trigger names no table.
    """
    table = table_of(trigger.asset) if trigger.asset is not None else None
    return None if table is None else makers.get(table_key(table))


def check_triggers(declaration: Declaration) -> Iterator[Diagnostic]:
    """Check the triggers of a model on its own.

    Args:
        declaration: The model, with the defaults of its project.

    Yields:
        Diagnostic: What is wrong with them.
    """
    for number, trigger in enumerate(declaration.schedule.triggers):
        for check in _OF_TRIGGERS:
            yield from check(declaration, trigger, f"on:{number}")
    for rule in _OF_SCHEDULES:
        yield from rule(declaration)


def _warning(
    declaration: Declaration, key: str, message: str, hint: str, rule: str = "trigger"
) -> Diagnostic:
    return Diagnostic("warning", message, declaration.place(key), hint, rule)


def _served(declaration: Declaration, trigger: Trigger, key: str) -> Iterator[Diagnostic]:
    if trigger.is_served:
        return
    if trigger.asset is not None:
        message = f"nothing watches {trigger.asset}, so it never fires the model"
        hint = "name a table or a file: on ducklake://main/table, on s3://bucket/path"
    else:
        message = f"nothing serves `{trigger.kind}`, so it never fires the model"
        hint = "write `on webhook name=NAME`, and POST each message to /events/NAME"
    yield _warning(declaration, key, message, hint, "idle")


def _times(declaration: Declaration, trigger: Trigger, key: str) -> Iterator[Diagnostic]:
    """Check the cron and the zone of a line; those of defaults are checked where they stand."""
    if "cron" not in OPTIONS.get(trigger.kind, ()):
        return
    if trigger.cron is None:
        message = "the schedule has no cron, so it never fires the model"
        hint = 'write `on schedule cron="0 6 * * *"`, or cron in [project.defaults]'
        yield _warning(declaration, key, message, hint)
    if trigger.cron is not None and f"{key}:cron" in declaration.places:
        try:
            Cron(trigger.cron).check_fields()
        except ValueError as error:
            place = declaration.place(f"{key}:cron")
            yield Diagnostic("error", f"`{trigger.cron}` {error}", place, _CRON_HINT, "cron")
    if trigger.tz is not None and f"{key}:tz" in declaration.places:
        try:
            check_spec(PartitionSpec("daily", tz=trigger.tz))
        except PartitionError as error:
            place = declaration.place(f"{key}:tz")
            message = f"`{trigger.tz}` is not a time zone"
            yield Diagnostic("error", message, place, error.hint, "cron")


def _messages(declaration: Declaration, trigger: Trigger, key: str) -> Iterator[Diagnostic]:
    if trigger.kind in NAME_OPTIONS and trigger.message(declaration.target.full) is None:
        option = NAME_OPTIONS[trigger.kind]
        message = f"`on {trigger.kind}` names no {option}, so it never fires the model"
        yield _warning(declaration, key, message, f"write `on {trigger.kind} {option}=NAME`")


def _keys(declaration: Declaration, trigger: Trigger, key: str) -> Iterator[Diagnostic]:
    """A schedule says no key of a partition that is not one of time."""
    spec = declaration.partition
    if spec is None or spec.kind in TIME_KINDS or "cron" not in OPTIONS.get(trigger.kind, ()):
        return
    message = f"a schedule has no payload with `{spec.key}`, so it never fires the model"
    yield _warning(declaration, key, message, "write `on webhook`, or partition it by time")


def _itself(declaration: Declaration, trigger: Trigger, key: str) -> Iterator[Diagnostic]:
    table = None if trigger.asset is None else table_of(trigger.asset)
    if table is not None and table_key(table) == table_key(declaration.target):
        message = f"{table} is the table of the model itself, whose changes do not fire it"
        yield _warning(declaration, key, message, "name another table, or take the line away")


def _longer_debounce(
    declaration: Declaration, debounce: str | None, key: str
) -> Iterator[Diagnostic]:
    freshness = declaration.schedule.freshness
    if freshness is not None and 0 < seconds_of(freshness) < seconds_of(debounce):
        message = (
            f"a debounce of {debounce} is longer than the freshness of {freshness}: "
            "the table is late before its inputs fire the model"
        )
        yield _warning(declaration, key, message, "write a debounce below the freshness")


def _debounce_has_inputs(declaration: Declaration) -> Iterator[Diagnostic]:
    schedule = declaration.schedule
    if schedule.debounce is None:
        return
    yield from _longer_debounce(declaration, schedule.debounce, "debounce")
    if not any(trigger.takes_debounce for trigger in schedule.triggers):
        message = "`debounce` has no effect: no line `on` names an asset or a message"
        yield _warning(declaration, "debounce", message, _AWAY)


def _join_has_inputs(declaration: Declaration) -> Iterator[Diagnostic]:
    schedule = declaration.schedule
    if schedule.join and not any(trigger.asset is not None for trigger in schedule.triggers):
        message = f"`trigger {schedule.join}` has no effect: no line `on` names an asset"
        yield _warning(declaration, "trigger", message, "write `on ducklake://main/table`")


def _catchup_has_schedule(declaration: Declaration) -> Iterator[Diagnostic]:
    if declaration.schedule.catchup is None or cron_of(declaration) is not None:
        return
    if declaration.by_block:
        message = f"`catchup` has no effect: {why_never_due(declaration)}"
        yield _warning(declaration, "catchup", message, _AWAY)
    elif all("cron" not in OPTIONS.get(t.kind, ()) for t in declaration.schedule.triggers):
        message = "`catchup` has no effect: the model has no schedule"
        yield _warning(declaration, "catchup", message, f"write `on schedule`, or {_AWAY}")


_OF_TRIGGERS: tuple[Callable[[Declaration, Trigger, str], Iterator[Diagnostic]], ...] = (
    _served,
    _times,
    _messages,
    _keys,
    _itself,
    lambda declaration, trigger, key: _longer_debounce(declaration, trigger.debounce, key),
)
_OF_SCHEDULES: tuple[Callable[[Declaration], Iterator[Diagnostic]], ...] = (
    _debounce_has_inputs,
    _join_has_inputs,
    _catchup_has_schedule,
)


def check_cascades(models: Sequence[Model]) -> Iterator[Diagnostic]:
    """Check the triggers of models among each sharer.

    Args:
        models: The models of a project.

    Yields:
        Diagnostic: What is wrong with them.
    """
    makers = makers_by_table(models)
    for model in models:
        yield from _joins_wait(model, makers)
        yield from _inputs_have_keys(model, makers)
    yield from _shared_messages(models)


def _joins_wait(model: Model, makers: Mapping[str, Model]) -> Iterator[Diagnostic]:
    assets = [trigger for trigger in model.schedule.triggers if trigger.asset is not None]
    if model.schedule.join != "all" or not assets:
        return
    if not any(joins_by_partition(asset, model, maker_of(asset, makers)) for asset in assets):
        cause = "the model is not partitioned"
        hint = "partition the model and its inputs, or write {partition} in the paths of files"
        if model.partition is not None:
            cause = "no input is partitioned"
            hint = "name tables of partitioned models, or write {partition} in the paths of files"
        message = f"`trigger all` waits for nothing, because {cause}: each input fires the model"
        yield _warning(model, "trigger", message, hint)


def _inputs_have_keys(model: Model, makers: Mapping[str, Model]) -> Iterator[Diagnostic]:
    """A change of a whole table says no key of a partition that is not one of time."""
    spec = model.partition
    if spec is None or spec.kind in TIME_KINDS:
        return
    for number, trigger in enumerate(model.schedule.triggers):
        if trigger.asset is None or not trigger.is_served:
            continue
        if not joins_by_partition(trigger, model, maker_of(trigger, makers)):
            message = (
                f"{trigger.asset} has no partitions, so a change of it has no `{spec.key}` "
                "and never fires the model"
            )
            hint = "name the table of a partitioned model, or write `on webhook`"
            yield _warning(model, f"on:{number}", message, hint)


def _shared_messages(models: Sequence[Model]) -> Iterator[Diagnostic]:
    """Messages that fire several models, which is seldom meant where both chose a name."""
    models_by_name: dict[str, Model] = {}
    for model in models:
        for number, trigger in enumerate(model.schedule.triggers):
            name = trigger.message(model.name)
            sharer = model if name is None else models_by_name.setdefault(name, model)
            if sharer is not model:
                message = f"messages `{name}` fire {sharer.name} as well"
                hint = "give one of the two another name, unless both are meant"
                yield _warning(model, f"on:{number}", message, hint, "shared-message")
