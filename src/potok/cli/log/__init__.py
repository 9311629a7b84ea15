"""Commands on topics, records and consumer groups."""
