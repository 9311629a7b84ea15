"""Push queries."""
