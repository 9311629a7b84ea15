"""The oracle: what a topology means, recomputed in plain Python, one record at a time."""

from oracle.oracle import recompute
from oracle.records import DeadLetter, Expected, Input, Output, Position, Written

__all__ = ["DeadLetter", "Expected", "Input", "Output", "Position", "Written", "recompute"]
