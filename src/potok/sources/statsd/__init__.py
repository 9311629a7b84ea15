"""StatsD: a listener for metrics, and tables of them."""
