"""Poll HTTP endpoints and growing files for new records."""
