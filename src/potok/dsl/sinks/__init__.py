"""Methods of streams that write to topics and external sinks."""
