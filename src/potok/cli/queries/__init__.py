"""Commands that run, explain and compare programs."""
