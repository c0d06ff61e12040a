"""What a history is after some loads, in plain Python: one key and one row after the other.

The rules are those of history.md. A row is a mapping with a key ``id``, values and, where the rules
have it, ``at``; moments are plain datetimes in UTC.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - as the columns are, in UTC without saying so
FOREVER = datetime(9999, 1, 1)  # noqa: DTZ001
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Rules:
    by_time: bool
    timed: bool  # rows have ``at``
    track: tuple[str, ...]
    closes: bool
    start: str  # of a key of the first load: epoch, updated_at or execution


@dataclass
class Version:
    row: Row
    since: datetime
    until: datetime | None = None

    @property
    def at(self) -> datetime:
        moment: datetime = self.row["at"]
        return moment

    @property
    def is_void(self) -> bool:
        """Whether it was never valid: no history has such a version."""
        return self.until is not None and self.until <= self.since

    def order(self) -> tuple[datetime, datetime, datetime]:
        """Of versions that begin and end at one moment the newest is the last."""
        return self.since, self.until or FOREVER, self.row.get("at", EPOCH)

    def holds(self, moment: datetime) -> bool:
        return self.since <= moment and (self.until is None or moment < self.until)


@dataclass
class History:
    rules: Rules
    keys: dict[Any, list[Version]] = field(default_factory=dict)
    loads: int = 0

    def load(self, rows: Sequence[Row], now: datetime) -> None:
        by_key: dict[Any, list[Row]] = defaultdict(list)
        for row in rows:
            by_key[row["id"]].append(row)
        for key in {*by_key, *self.keys}:
            own = by_key.get(key, [])
            if self.rules.timed:
                own.sort(key=lambda row: row["at"])
            versions = self.keys.setdefault(key, [])
            if own:
                self._key(versions, own, now)
            elif self.rules.closes and versions and versions[-1].until is None:
                versions[-1].until = max(now, versions[-1].since)
            versions[:] = sorted((v for v in versions if not v.is_void), key=Version.order)
        self.loads += 1

    def _key(self, versions: list[Version], rows: list[Row], now: datetime) -> None:
        last = versions[-1] if versions else None
        known = [Version(v.row, v.since, v.until) for v in versions]
        news, late = self._parted(rows, last)
        opened = self._open(versions, last, news, now)
        if self.rules.by_time and self.loads:  # by its own time it may have been valid
            late += [v.row for v in versions[len(known) :] if v.is_void]
            late.sort(key=lambda row: row["at"])
        if late and known:
            self._insert(versions, known, late, opened)

    def _parted(self, rows: list[Row], last: Version | None) -> tuple[list[Row], list[Row]]:
        """Rows that may open versions after the last one, and rows that belong before it."""
        if last is None or not self.rules.timed:
            return rows, []
        if self.rules.by_time and last.until is None:
            news = [row for row in rows if row["at"] >= last.at]
        else:
            news = [row for row in rows if row["at"] > last.at or row is rows[-1]]
        if not self.rules.by_time:
            return news, []
        return news, [row for row in rows if row["at"] < last.at and row not in news]

    def _differs(self, a: Row, b: Row) -> bool:
        return any(a[name] != b[name] for name in self.rules.track)

    def _open(
        self, versions: list[Version], last: Version | None, rows: Sequence[Row], now: datetime
    ) -> datetime | None:
        """Open a version for each row that is news; when the first of them begins."""
        first: datetime | None = None
        before = last
        for row in rows:
            if before is not None and before.until is None and not self._is_news(row, before):
                continue
            since = self._since(row, before, now, begun=first is not None)
            if before is not None and before.until is None:
                before.until = since
            before = Version(row, since)
            versions.append(before)
            first = first or since
        return first

    def _is_news(self, row: Row, before: Version) -> bool:
        if self.rules.by_time and row["at"] != before.at:
            return True
        return self._differs(row, before.row)

    def _since(self, row: Row, before: Version | None, now: datetime, *, begun: bool) -> datetime:
        rules = self.rules
        if before is None:
            if self.loads == 0 and rules.start == "epoch":
                return EPOCH
            return row["at"] if rules.timed and rules.start != "execution" else now
        if before.until is not None:  # it comes back
            return max(row["at"] if rules.by_time else now, before.until)
        newer = rules.timed and row["at"] > before.at
        if newer and row["at"] >= before.since:
            return row["at"]  # type: ignore[no-any-return] # a value of a row
        return max(now, before.since)

    def _insert(
        self,
        versions: list[Version],
        known: list[Version],
        late: Sequence[Row],
        opened: datetime | None,
    ) -> None:
        """Put late rows into what was there before this load, one after the other."""
        new = [version for version in versions[len(known) :] if not version.is_void]
        current, newest = known, known[-1]  # as before the load: the last version may be open
        times = {v.at for v in current}
        for row in late:
            if row["at"] in times:
                continue
            at = row["at"]
            around = next((version for version in current if version.holds(at)), None)
            if around is None:
                later = [v.since for v in current if v.since > at]
                bound = min(later) if later else opened
                assert bound is not None
                current.append(Version(row, min(at, bound), bound))
            elif at < around.at:
                ends = [around.at, around.until, opened if around is newest else None]
                cap = min(end for end in ends if end is not None)
                current.append(Version(row, around.since, cap))
                around.since = cap
            else:
                end = around.until or (opened if around is newest else None)
                around.until = min(at, end) if end else at
                current.append(Version(row, around.until, end))
            current.sort(key=Version.order)
        if opened is not None and newest.until is None:
            newest.until = opened
        versions[:] = [*current, *new]


def rows_of(history: History) -> list[tuple[Any, ...]]:
    """All versions: values in the order of a row, then since and until."""
    return sorted(
        (
            (*version.row.values(), version.since, version.until)
            for versions in history.keys.values()
            for version in versions
        ),
        key=repr,
    )
