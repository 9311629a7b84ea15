"""What programs read besides topics: captures, DataFrames, events; and formats by name."""
