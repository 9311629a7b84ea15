"""Call a function in the driver with the rows of each batch, as one DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.sinks.callable import NotIdempotent, call_function
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch, Failures, Opening, Prepared, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.spark_access import SparkAccess, SparkNeeded
from potok.sinks.typed_rows import RowShape, rows_as_table

BatchFormat = Literal["spark", "arrow"]


@dataclass(frozen=True, slots=True)
class DataFrameTarget(SinkSpec):
    """A function of the rows of a batch and, if it takes two arguments, of the batch number.

    It is called in the driver, and is not sent to the tasks.
    """

    verb: ClassVar[str] = "to_dataframe"

    function: Function | None
    format: BatchFormat
    shape: RowShape

    @property
    def label(self) -> str:
        return f"the function {'' if self.function is None else self.function.name.split('<locals>.')[-1]}"

    def check(self, types: Types, guarantee: Guarantee) -> None:
        if self.format not in ("spark", "arrow"):
            hint = 'write format="spark" or format="arrow"; both have to_pandas methods'
            raise TopologyError(f'there are no DataFrames of "{self.format}"', hint=hint)
        self.shape.check(types)
        if guarantee is Guarantee.EXACTLY_ONCE and self.function is not None and self.function.arity < 2:
            raise NotIdempotent(self.function.name)

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        return self.shape.prepare(rows, types)

    def open(self, opening: Opening) -> SinkWriter:
        if self.format == "arrow":
            return DataFrameWriter(self, opening, None)
        if opening.spark is None:
            raise SparkNeeded(opening.step, self.verb)
        return DataFrameWriter(self, opening, opening.spark)

    def __reduce__(self) -> tuple[object, ...]:
        return DataFrameTarget, (None, self.format, self.shape)


class DataFrameWriter(SinkWriter):
    """Calls the function once for each batch with rows."""

    def __init__(self, target: DataFrameTarget, opening: Opening, spark: SparkAccess | None) -> None:
        assert target.function is not None
        self._target, self._function, self._opening, self._spark = target, target.function, opening, spark

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        table = rows_as_table(rows)
        frame = table if self._spark is None else self._spark.session().createDataFrame(table)
        return call_function(self._function, frame, len(table), batch, self._opening, self._target.label)

    def close(self) -> None:
        """Do nothing: the function and its resources belong to the user."""
