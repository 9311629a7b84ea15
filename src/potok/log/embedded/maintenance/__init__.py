"""Retention, compaction, archiving and verification of the embedded log."""
