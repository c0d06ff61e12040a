"""Options of a Delta table that Penstock applies or only other engines need; others are refused.

An option whose feature is not in the protocol breaks the table for engines that know the feature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from penstock.delta.features import APPEND_ONLY, CHANGE_FEED, VECTORS
from penstock.errors import ArgumentError, UnsupportedFeature

CHECKPOINT_INTERVAL = "delta.checkpointInterval"
_OWN = "delta."
_SPAN = re.compile(r"(interval\s+)?\d+\s+(micro|milli)?(second|minute|hour|day|week)s?", re.I)
Reader = Callable[[str], str | None]  # the value as Delta has it, None for one that is none


def _boolean(text: str) -> str | None:
    return text.lower() if text.lower() in {"true", "false"} else None


def _number(text: str) -> str | None:
    return text if text.isdecimal() and int(text) > 0 else None


def _whole(text: str) -> str | None:
    return text if re.fullmatch(r"-?\d+", text) else None


def _span(text: str) -> str | None:
    return text if _SPAN.fullmatch(text.strip()) else None


def _size(text: str) -> str | None:
    return text if re.fullmatch(r"\d+\s*([kmgt]?b?)", text.strip(), re.I) else None


def _isolation(text: str) -> str | None:
    return text if text in {"Serializable", "WriteSerializable"} else None


def _none(text: str) -> str | None:
    return text if text == "none" else None


_READERS: Mapping[str, tuple[Reader, str]] = {
    VECTORS: (_boolean, "true or false"),
    APPEND_ONLY: (_boolean, "true or false"),
    CHANGE_FEED: (_boolean, "true or false"),
    CHECKPOINT_INTERVAL: (_number, "a number of commits"),
    "delta.columnMapping.mode": (_none, "none: column mapping is not written"),
    # What follows says how other engines write, optimize or clean up the table.
    "delta.isolationLevel": (_isolation, "Serializable or WriteSerializable"),
    "delta.logRetentionDuration": (_span, "a time such as 'interval 30 days'"),
    "delta.deletedFileRetentionDuration": (_span, "a time such as 'interval 7 days'"),
    "delta.setTransactionRetentionDuration": (_span, "a time such as 'interval 7 days'"),
    "delta.enableExpiredLogCleanup": (_boolean, "true or false"),
    "delta.autoOptimize": (_boolean, "true or false"),
    "delta.autoOptimize.autoCompact": (str, "text"),
    "delta.autoOptimize.optimizeWrite": (_boolean, "true or false"),
    "delta.tuneFileSizesForRewrites": (_boolean, "true or false"),
    "delta.targetFileSize": (_size, "a size such as 128mb"),
    "delta.randomizeFilePrefixes": (_boolean, "true or false"),
    "delta.dataSkippingNumIndexedCols": (_whole, "a number of columns"),
    "delta.dataSkippingStatsColumns": (str, "names of columns"),
}
_SPELLED = {name.lower(): name for name in _READERS}


def checked_options(options: Mapping[str, object], table: str) -> dict[str, str]:
    """The options as Delta spells them. Options without ``delta.`` are the user's own.

    Raises UnsupportedFeature for an option that is not done, ArgumentError for a wrong value.
    """
    checked: dict[str, str] = {}
    for key, value in options.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if key.lower().startswith(_OWN):
            name = _SPELLED.get(key.lower())
            if name is None:
                raise _refused(key, table)
            checked[name] = _value(name, text)
        else:
            checked[key] = text
    return checked


def _value(name: str, text: str) -> str:
    reader, form = _READERS[name]
    value = reader(text)
    if value is None:
        raise ArgumentError(
            f"{text!r} is not a value of {name}", hint=f"write {form}", data={"option": name}
        )
    return value


def _refused(key: str, table: str) -> UnsupportedFeature:
    supported = ", ".join(sorted((VECTORS, APPEND_ONLY, CHANGE_FEED, CHECKPOINT_INTERVAL)))
    return UnsupportedFeature(
        f"Penstock cannot set the option {key} of the Delta table {table}: it does not implement "
        "what the option requires of writers",
        hint=f"set it with another engine; Penstock sets {supported}, and the retention and "
        "layout options of other engines",
        data={"table": table, "option": key},
    )
