"""Write to topics and to external sinks."""
