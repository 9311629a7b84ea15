"""Name the step that failed on its records or its state: errors of Python and NumPy do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from potok.errors import QueryError
from potok.machine import MachineError, is_of_machine
from potok.operators.core.operator import Operator
from potok.runtime.batches.failure_cause import code_location, is_internal
from potok.state.cell import MISFIT, REPAIR


class StepFailed(QueryError):
    """A step that failed for a reason other than a record or a user's function."""

    def __init__(self, step: str, shard: int | None, error: BaseException) -> None:
        what = f"{type(error).__name__}: {error}"[:500]
        if shard is None:
            found, hint = (
                "its records",
                "Start the query again; if it fails again, report this message",
            )
        else:
            found = f"the state of shard {shard}"
            hint = (
                "If something else writes to the state, or a backup of another query was restored: "
                f"{REPAIR}. Otherwise report this message"
            )
        super().__init__(
            f'step "{step}" cannot process {found}: {what} ({code_location(error)})',
            hint=f"nothing of the batch is visible. {hint}",
        )


@contextmanager
def naming_step(shard: int | None) -> Iterator[None]:
    """Raise `StepFailed` for an error of our own code, and `MachineError` for one of the machine; an error of a
    user's function is raised as it is. Steps that read, and those directly after them, have no shard.
    """
    try:
        yield
    except (*MISFIT, RecursionError, OSError, MemoryError) as error:
        step = _step_of(error.__traceback__)
        if not step or not is_internal(error):
            raise
        if isinstance(error, OSError | MemoryError):
            if not is_of_machine(error):
                raise
            raise MachineError(f'step "{step}" was running', error) from error
        raise StepFailed(step, shard, error) from error


def _step_of(trace: TracebackType | None) -> str:
    """Return the step that ran last."""
    step = ""
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        if isinstance(owner, Operator):
            # An operator that reads its state in its constructor may not have its name yet.
            step = getattr(owner, "step", step)
        trace = trace.tb_next
    return step
