"""``SET spark...`` of one script: a session of its own, so that no other step sees the setting."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from penstock.model.query import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.lake.lake import Lake


def session_for(query: Query, session: SparkSession) -> SparkSession:
    """``session`` itself when the script sets nothing."""
    if not query.settings:
        return session
    own = session.newSession()
    for setting in query.settings:
        own.conf.set(setting.name, setting.value)
    return own


def lakes_for(session: SparkSession, lakes: Mapping[str, Lake]) -> dict[str, Lake]:
    """The same lakes, read and written by ``session``: DataFrames of two sessions do not mix."""
    from penstock.lake.lake import Lake
    from penstock.lake.session import source
    from penstock.lake.storage import spark_settings

    return {
        name: Lake(
            lake.catalog,
            source(session, partial(spark_settings, lake.catalog.data_path)),
            lake.at,
            lake.name,
        )
        for name, lake in lakes.items()
    }
