"""dbt's connections: one handle for each thread over the lakes of the profile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.penstock.handle import Handle, Origin
from dbt.adapters.penstock.lakes import lakes_of
from penstock.errors import PenstockError

logger = AdapterLogger("Penstock")


class PenstockConnectionManager(SQLConnectionManager):
    """Statements go to `Handle`, and Penstock's errors become dbt's."""

    TYPE = "penstock"

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Raise what fails as an error of dbt's, with what Penstock says to do next."""
        try:
            yield
        except PenstockError as error:
            logger.debug(f"Error while running:\n{sql}")
            raise DbtDatabaseError(str(error)) from error
        except DbtRuntimeError:
            raise
        except Exception as error:
            from penstock.spark.failures import explain

            logger.debug(f"Error while running:\n{sql}")
            raise DbtDatabaseError(str(explain(error))) from error

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Open the catalog. Spark starts when data is first needed."""
        if connection.state == ConnectionState.OPEN:
            return connection
        try:
            lakes = lakes_of(connection.credentials)
            lakes.lake()
        except PenstockError as error:
            connection.handle, connection.state = None, ConnectionState.FAIL
            raise FailedToConnectError(str(error)) from error
        connection.handle, connection.state = Handle(lakes), ConnectionState.OPEN
        return connection

    def cancel(self, connection: Connection) -> None:
        """Cancel the jobs of Spark: dbt does so when it is interrupted, for all threads at once."""
        session = connection.handle.lakes.started
        if session is not None and hasattr(session, "sparkContext"):
            session.sparkContext.cancelAllJobs()

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        """What a statement did."""
        return cursor.response  # type: ignore[no-any-return] # dbt's cursors have no type

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        """The cursor's types are names already."""
        return str(type_code)

    def add_begin_query(self) -> Any:
        """Begin a transaction, whose snapshot says which node of dbt made it."""
        self.get_thread_connection().handle.begin(self._origin())

    def add_commit_query(self) -> Any:
        """Publish it."""
        with self.exception_handler("COMMIT"):
            self.get_thread_connection().handle.commit()

    def commit(self) -> Connection:
        """Publish what a transaction did. Without one each statement has published its own."""
        connection: Connection = self.get_thread_connection()
        if connection.transaction_open:
            super().commit()
        return connection

    def _origin(self) -> Origin:
        """The query comment and the invocation, as dbt has them."""
        comment = self.query_header.comment.query_comment if self.query_header else None
        extra: dict[str, Any] = {"invocation_id": get_invocation_id()}
        try:
            given = json.loads(comment or "{}")
        except ValueError:  # of the user's own form
            given = {"comment": comment}
        extra |= given if isinstance(given, dict) else {"comment": comment}
        node = extra.get("node_id") or self.get_thread_connection().name
        return Origin(message=node, extra=json.dumps(extra))
