"""Custom processors with state and timers."""
