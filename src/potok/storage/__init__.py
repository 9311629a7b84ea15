"""LMDB files whose pages are verified before LMDB maps them, shared by the log's metadata and the state."""
