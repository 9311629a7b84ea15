"""What the log's metadata and the state have in common: LMDB files whose pages are checked before LMDB maps them."""
