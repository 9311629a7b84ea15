"""The queries of a catalog: what runs them, what is known of them, and their tables and logs."""
