"""Every kind of data test by its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.engine.checks import accepted_values, custom, not_null, relationships, unique
from penstock.engine.checks.check import Check
from penstock.engine.checks.scope import Scope
from penstock.model import data_test
from penstock.model.data_test import DataTest

# Any: each builder takes its own kind of test, which the key promises.
BUILDERS: Mapping[type[DataTest], Callable[[Any, Scope], Check]] = {
    data_test.UniqueTest: unique.build,
    data_test.NotNullTest: not_null.build,
    data_test.AcceptedValuesTest: accepted_values.build,
    data_test.RelationshipsTest: relationships.build,
    data_test.CustomTest: custom.build,
}


def build(test: DataTest, scope: Scope) -> Check:
    """Raises ColumnNotFound, at the test's line, for a column that is not there."""
    return BUILDERS[type(test)](test, scope)
