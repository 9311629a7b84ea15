"""One batch: its tasks, stages and attempts."""
