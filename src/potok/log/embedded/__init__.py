"""The log of a single machine: segments in a directory, metadata in LMDB."""
