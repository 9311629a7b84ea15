"""Output next to the commit: external sinks, dead letters, the processing log."""
