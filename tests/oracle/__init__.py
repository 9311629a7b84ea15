"""The oracle: what a topology means, recomputed in plain Python, one record at a time."""

from tests.oracle.oracle import recompute
from tests.oracle.records import DeadLetter, Expected, Input, Output, Position, Written

__all__ = ["DeadLetter", "Expected", "Input", "Output", "Position", "Written", "recompute"]
