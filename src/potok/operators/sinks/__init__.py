"""Writing to topics and to external sinks."""
