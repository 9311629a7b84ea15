"""The catalog: commands, their checks, compaction and cleanup."""
