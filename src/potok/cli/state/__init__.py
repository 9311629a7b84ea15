"""Commands on tables, state, offsets and dead letters."""
