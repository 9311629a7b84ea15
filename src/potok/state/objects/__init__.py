"""Cells in object storage: a chain of deltas and snapshots for each shard, and a copy in LMDB on the local disk."""
