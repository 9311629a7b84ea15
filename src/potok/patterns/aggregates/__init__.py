"""Event-sourced aggregates: commands are decided, events are folded into state."""
