"""Notify recipients of slices that are late, and of slices that are fresh again.

Usually, a late slice is rebuilt at once. So a notification is sent only if the slice is still late
after the wait before a second attempt. A notification that fails is retried in the next round.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from penstock.engine.answers.ages import freshness_of
from penstock.errors import PenstockError
from penstock.project.states import select_words
from penstock.scheduler.freshness import find_first_wait, find_overdue_since, is_overdue
from penstock.server.ages import LOOK, read_ages
from penstock.server.late_notices import LateNotice, LateNoticeStore
from penstock.sinks.notify import LATE, RECOVERY, LateSlice, Sender, build_late_message, send

if TYPE_CHECKING:
    from penstock.project.context import ProjectContext
    from penstock.scheduler.values import Age
    from penstock.settings.sink_settings import NotifySettings

LOG = logging.getLogger("penstock.serve")
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _LateRecord:
    """A late slice as it was first detected, and the time of its notification."""

    slice: LateSlice
    notify_at: datetime


class LatenessNotifier:
    """A periodic task that sends notifications once per `LOOK` seconds, in a thread."""

    def __init__(
        self,
        notices: LateNoticeStore,
        read_context: Callable[[], ProjectContext],
        is_leading: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a notifier. The first call starts a round.

        Args:
            notices: The store of sent notifications.
            read_context: Returns the current project.
            is_leading: Returns whether this process leads. Only the leader sends notifications.
            clock: Returns monotonic seconds.
        """
        self._notices = notices
        self._read_context = read_context
        self._is_leading = is_leading
        self._clock = clock
        self._started_at: float | None = None
        self._thread: threading.Thread | None = None
        self._late: Mapping[Key, _LateRecord] = {}

    def __call__(self, moment: datetime) -> None:
        """Start a round, unless one is running or the last start is too recent.

        Args:
            moment: The time.
        """
        is_busy = self._thread is not None and self._thread.is_alive()
        seconds = self._clock()
        if is_busy or (self._started_at is not None and seconds - self._started_at < LOOK):
            return
        self._started_at = seconds
        self._thread = threading.Thread(
            target=self._notify_safely, args=(moment,), name="penstock-lateness", daemon=True
        )
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the running round.

        Args:
            seconds: The timeout.
        """
        if self._thread is not None:
            self._thread.join(seconds)

    def _notify_safely(self, moment: datetime) -> None:
        try:
            self.notify(moment)
        except PenstockError as error:
            LOG.error("notifications of late slices failed: %s", error)
        except Exception:
            LOG.exception("notifications of late slices failed")

    def notify(self, moment: datetime) -> None:
        """Send the notifications that are due.

        Args:
            moment: The time.
        """
        context = self._read_context()
        recipients = {entry.name: entry for entry in context.settings.notify if entry.late}
        notices = self._notices.read()
        if not recipients and not notices:
            return
        ages = {(age.model, age.key): age for age in read_ages(context, moment)}
        self._late = _find_late(context, ages, self._late, moment)
        unused = [notice for notice in notices if notice.recipient not in recipients]
        if unused:
            self._notices.change(removed=unused)
        for name, entry in recipients.items():
            mine = [notice for notice in notices if notice.recipient == name]
            is_selected = _make_filter(context, entry)
            self._notify_late(context, entry, mine, is_selected, moment)
            self._notify_recovered(context, entry, mine, is_selected, ages)

    def _notify_late(
        self,
        context: ProjectContext,
        recipient: NotifySettings,
        notices: Sequence[LateNotice],
        is_selected: Callable[[str], bool],
        moment: datetime,
    ) -> None:
        notified = {(notice.model, notice.key) for notice in notices}
        late = {
            key: record.slice
            for key, record in self._late.items()
            if key not in notified and moment >= record.notify_at and is_selected(key[0])
        }
        if late and self._send(context, recipient, LATE, list(late.values())):
            self._notices.change(added=[LateNotice(recipient.name, *key) for key in late])

    def _notify_recovered(
        self,
        context: ProjectContext,
        recipient: NotifySettings,
        notices: Sequence[LateNotice],
        is_selected: Callable[[str], bool],
        ages: Mapping[Key, Age],
    ) -> None:
        """Notify of slices that are fresh again. Removed slices have no notification."""
        ended = [notice for notice in notices if (notice.model, notice.key) not in self._late]
        recovered = [
            LateSlice(
                age.model, age.key, context.by_name[age.model].schedule.freshness or "", built
            )
            for notice in ended
            if (age := ages.get((notice.model, notice.key))) is not None
            and (built := age.built_at) is not None
            and is_selected(notice.model)
        ]
        is_wanted = bool(recovered) and recipient.recovery
        is_done = not is_wanted or self._send(context, recipient, RECOVERY, recovered)
        if ended and is_done:
            self._notices.change(removed=ended)

    def _send(
        self,
        context: ProjectContext,
        recipient: NotifySettings,
        event: str,
        slices: Sequence[LateSlice],
    ) -> bool:
        if not self._is_leading():
            return False
        message = build_late_message(event, slices, Sender.now(context.settings.name))
        problem = send(recipient, message, context.settings.root)
        if problem is not None:
            name = recipient.name
            LOG.warning("notify.%s: the %s message was not sent: %s", name, event, problem)
        return problem is None


def _find_late(
    context: ProjectContext,
    ages: Mapping[Key, Age],
    before: Mapping[Key, _LateRecord],
    moment: datetime,
) -> dict[Key, _LateRecord]:
    """Return the late slices. A slice that was late ``before`` keeps its first record."""
    late: dict[Key, _LateRecord] = {}
    for key, age in ages.items():
        model = context.by_name[age.model]
        freshness = freshness_of(model)
        if freshness is None or not is_overdue(age, freshness, moment):
            continue
        since = find_overdue_since(age, freshness)
        slice_ = LateSlice(*key, model.schedule.freshness or "", age.built_at, since)
        new = _LateRecord(slice_, moment + find_first_wait(freshness))
        earlier = before.get(key)
        is_same = earlier is not None and earlier.slice.built_at == age.built_at
        late[key] = earlier if earlier is not None and is_same else new
    return late


def _make_filter(context: ProjectContext, recipient: NotifySettings) -> Callable[[str], bool]:
    """Return a function that returns whether a recipient selects a model."""
    return (
        select_words(context, recipient.select).__contains__ if recipient.select else lambda _: True
    )
