"""Models in Python: ``def model(dbt, session)`` in this process, with Penstock's session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    from dbt.adapters.penstock.handle import Handle, PenstockResponse

RESULT = "__dbt_python_result"  # the temporary relation that holds what a model returned


def run(handle: Handle, model: dict[str, Any], code: str) -> PenstockResponse:
    """Run the compiled code, which defines ``model`` and calls ``write``.

    The macros that compile it put its last lines there: they name the statement that writes.
    """
    session = handle.lakes.session()
    names: dict[str, Any] = {"__name__": f"dbt_model_{model['name']}", "spark": session}
    exec(compile(code, f"{model['original_file_path']} (compiled)", "exec"), names)
    response: list[PenstockResponse] = []

    def load(name: str) -> Any:
        return handle.run(f"SELECT * FROM {name}").frame

    def write(frame: Any, statements: list[str]) -> None:
        handle.views[RESULT] = _frame(session, frame, model["name"])
        response.extend(handle.run(text).response for text in statements)
        del handle.views[RESULT]

    names["main"](session, load, write)
    return response[-1]


def _frame(session: Any, frame: Any, name: str) -> Any:
    """A frame of Spark of what a model returned: one itself, or of pandas, polars or Arrow."""
    if hasattr(frame, "sparkSession"):
        return frame
    if hasattr(frame, "to_spark"):  # pandas on Spark
        return frame.to_spark()
    if hasattr(frame, "toArrow"):
        frame = frame.toArrow()
    elif hasattr(frame, "to_arrow"):
        frame = frame.to_arrow()
    try:
        return session.createDataFrame(frame)
    except Exception as error:
        raise DbtRuntimeError(
            f"the model {name} returned a {type(frame).__name__}: return a DataFrame of Spark, "
            f"pandas or Arrow ({error})"
        ) from error
