"""The demo: an online shop with an endless stream of orders."""
