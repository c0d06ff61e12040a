"""The adapter of dbt for Penstock: ``type: penstock`` in profiles.yml."""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.factory import FACTORY

from dbt.adapters.penstock.connections import PenstockConnectionManager
from dbt.adapters.penstock.credentials import PenstockCredentials
from dbt.adapters.penstock.dispatch import add_parent
from dbt.adapters.penstock.impl import PenstockAdapter
from dbt.include import penstock

__all__ = ["PenstockConnectionManager", "Plugin"]

Plugin = AdapterPlugin(
    adapter=PenstockAdapter,
    credentials=PenstockCredentials,
    include_path=penstock.PACKAGE_PATH,
)

add_parent(FACTORY)
