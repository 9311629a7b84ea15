"""Reading the tables and the dead letters of a query: from its own process or another, while it runs and while it does
not."""

from potok.views.letter_box import LetterBox
from potok.views.table_view import TableView, WindowedKey
from potok.views.tables import Tables
from potok.views.wanted_letters import Wanted

__all__ = ["LetterBox", "TableView", "Tables", "Wanted", "WindowedKey"]


def __dir__() -> list[str]:
    return sorted(__all__)
