"""Reading the tables of a query: from its own process or another, while it runs and while it does not."""

from potok.views.table_view import TableView, WindowedKey
from potok.views.tables import Tables

__all__ = ["TableView", "Tables", "WindowedKey"]
