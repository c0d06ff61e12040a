"""Tell those whom the project names of slices that are past their freshness, and fresh again.

A slice that has become late is renewed at once, as a rule. So it is told of only if it is still
late after the wait before a second attempt. What cannot be told is tried again at the next look.
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
from penstock.sinks.notify import LATE, RECOVERY, LateSlice, Told, message_of_late, send

if TYPE_CHECKING:
    from penstock.project.context import ProjectContext
    from penstock.scheduler.values import Age
    from penstock.settings.sink_settings import NotifySettings

LOG = logging.getLogger("penstock.serve")
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Noticed:
    """Hold a late slice as it was seen first, and when it is to be told of."""

    slice: LateSlice
    tells_at: datetime


class LatenessTeller:
    """Looks once in `LOOK` seconds who is to be told, in a thread: to send takes its time."""

    def __init__(
        self,
        notices: LateNoticeStore,
        read_context: Callable[[], ProjectContext],
        is_leading: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a teller that has told nothing.

        Args:
            notices: Who was told.
            read_context: Returns the project as it is now.
            is_leading: Returns whether this process decides; another one tells otherwise.
            clock: Returns seconds.
        """
        self._notices = notices
        self._read_context = read_context
        self._is_leading = is_leading
        self._clock = clock
        self._looked_at: float | None = None
        self._thread: threading.Thread | None = None
        self._noticed: Mapping[Key, _Noticed] = {}

    def __call__(self, moment: datetime) -> None:
        """Begin a look, unless one is under way or ended not long ago.

        Args:
            moment: The time.
        """
        is_busy = self._thread is not None and self._thread.is_alive()
        seconds = self._clock()
        if is_busy or (self._looked_at is not None and seconds - self._looked_at < LOOK):
            return
        self._looked_at = seconds
        self._thread = threading.Thread(
            target=self._look_safely, args=(moment,), name="penstock-lateness", daemon=True
        )
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the look that is under way.

        Args:
            seconds: How long to wait at most.
        """
        if self._thread is not None:
            self._thread.join(seconds)

    def _look_safely(self, moment: datetime) -> None:
        try:
            self.look(moment)
        except PenstockError as error:
            LOG.error("lateness cannot be told: %s", error)
        except Exception:
            LOG.exception("lateness cannot be told")

    def look(self, moment: datetime) -> None:
        """Tell what is to be told at a moment.

        Args:
            moment: The moment.
        """
        context = self._read_context()
        recipients = {entry.name: entry for entry in context.settings.notify if entry.late}
        notices = self._notices.read()
        if not recipients and not notices:
            return
        ages = {(age.model, age.key): age for age in read_ages(context, moment)}
        self._noticed = _find_late(context, ages, self._noticed, moment)
        strangers = [notice for notice in notices if notice.recipient not in recipients]
        if strangers:
            self._notices.change(removed=strangers)
        for name, entry in recipients.items():
            mine = [notice for notice in notices if notice.recipient == name]
            is_chosen = _chooser(context, entry)
            self._tell_of_late(context, entry, mine, is_chosen, moment)
            self._tell_of_fresh(context, entry, mine, is_chosen, ages)

    def _tell_of_late(
        self,
        context: ProjectContext,
        recipient: NotifySettings,
        notices: Sequence[LateNotice],
        is_chosen: Callable[[str], bool],
        moment: datetime,
    ) -> None:
        notified = {(notice.model, notice.key) for notice in notices}
        late = {
            key: noticed.slice
            for key, noticed in self._noticed.items()
            if key not in notified and moment >= noticed.tells_at and is_chosen(key[0])
        }
        if late and self._send(context, recipient, LATE, list(late.values())):
            self._notices.change(added=[LateNotice(recipient.name, *key) for key in late])

    def _tell_of_fresh(
        self,
        context: ProjectContext,
        recipient: NotifySettings,
        notices: Sequence[LateNotice],
        is_chosen: Callable[[str], bool],
        ages: Mapping[Key, Age],
    ) -> None:
        """Tell of slices that are late no more. Of those that are gone nobody is told."""
        ended = [it for it in notices if (it.model, it.key) not in self._noticed]
        back = [
            LateSlice(
                age.model, age.key, context.by_name[age.model].schedule.freshness or "", built
            )
            for notice in ended
            if (age := ages.get((notice.model, notice.key))) is not None
            and (built := age.built_at) is not None
            and is_chosen(notice.model)
        ]
        is_done = not (back and recipient.recovery) or self._send(
            context, recipient, RECOVERY, back
        )
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
        message = message_of_late(event, slices, Told.now(context.settings.name))
        problem = send(recipient, message, context.settings.root)
        if problem is not None:
            kind = "lateness" if event == LATE else event
            LOG.warning("notify.%s could not be told of the %s: %s", recipient.name, kind, problem)
        return problem is None


def _find_late(
    context: ProjectContext,
    ages: Mapping[Key, Age],
    before: Mapping[Key, _Noticed],
    moment: datetime,
) -> dict[Key, _Noticed]:
    """Return the slices that are late; those that were late ``before`` as they were seen first."""
    late: dict[Key, _Noticed] = {}
    for key, age in ages.items():
        model = context.by_name[age.model]
        freshness = freshness_of(model)
        if freshness is None or not is_overdue(age, freshness, moment):
            continue
        since = find_overdue_since(age, freshness)
        slice_ = LateSlice(*key, model.schedule.freshness or "", age.built_at, since)
        new = _Noticed(slice_, moment + find_first_wait(freshness))
        earlier = before.get(key)
        is_same = earlier is not None and earlier.slice.built_at == age.built_at
        late[key] = earlier if earlier is not None and is_same else new
    return late


def _chooser(context: ProjectContext, recipient: NotifySettings) -> Callable[[str], bool]:
    """Return what tells whether somebody is to be told of a model."""
    return (
        select_words(context, recipient.select).__contains__ if recipient.select else lambda _: True
    )
