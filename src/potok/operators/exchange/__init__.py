"""Move records to the shard of their key, and cells to other shards."""
