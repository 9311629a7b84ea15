"""Name the step that stopped at what it found in its state: an error of Python or NumPy names none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from potok.engine.cause import is_internal, place_of
from potok.errors import QueryError
from potok.kernels.operator import Operator
from potok.state.cell import REPAIR
from potok.state.misfit import MISFIT


class StepFailed(QueryError):
    """A step that raised what neither a record nor a user's function explains."""

    def __init__(self, step: str, shard: int, error: BaseException) -> None:
        what = f"{type(error).__name__}: {error}"[:500]
        super().__init__(
            f'step "{step}" cannot go on with the state of its shard {shard}: {what} ({place_of(error)})',
            hint="nothing of the batch is visible. If something else writes to the state, or a backup of another "
            f"query was restored: {REPAIR}. Otherwise report this message",
        )


@contextmanager
def naming_step(shard: int) -> Iterator[None]:
    """Raise `StepFailed` for an error of our own code; one of a user's function stays what it is."""
    try:
        yield
    except MISFIT as error:
        step = _step_of(error.__traceback__)
        if not step or not is_internal(error):
            raise
        raise StepFailed(step, shard, error) from error


def _step_of(trace: TracebackType | None) -> str:
    """The step that was at work last."""
    step = ""
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        if isinstance(owner, Operator):
            # An operator that reads its state while it is made may not have its name yet.
            step = getattr(owner, "step", step)
        trace = trace.tb_next
    return step
