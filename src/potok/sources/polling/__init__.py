"""Ask an HTTP endpoint for new records, at intervals."""
