"""MATCH_RECOGNIZE: row patterns, their conditions and their measures."""
