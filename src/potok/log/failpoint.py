"""The failpoints of the log, under the name by which other rooms know them."""

from potok.failpoint import SIGNAL, VARIABLE, failpoint

__all__ = ["SIGNAL", "VARIABLE", "failpoint"]
