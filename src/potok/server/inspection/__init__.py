"""What operators see and do: queries, topics, tables, dead letters, sources, groups."""
