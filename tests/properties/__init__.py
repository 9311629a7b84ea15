"""The promise, held to random topologies, records, batches, shards and restarts."""
