"""How changes and chunks of snapshots land, together with the position behind them."""
